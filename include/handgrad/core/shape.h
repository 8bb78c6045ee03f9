#pragma once

#include <algorithm>
#include <array>
#include <initializer_list>
#include <span>
#include <string>

#include "handgrad/core/types.h"

namespace handgrad {

/// Extents of a dense array, outermost first. Rank 0 is a scalar. Extents are at least 1.
class Shape {
 public:
  static constexpr int max_rank = 6;

  Shape() = default;
  /// Throws ShapeError for more than max_rank axes or an extent below 1, RangeError if the number of elements does not
  /// fit in 63 bits.
  Shape(std::initializer_list<Index> extents) : Shape(std::span<const Index>(extents.begin(), extents.size())) {}
  explicit Shape(std::span<const Index> extents);

  int rank() const { return rank_; }
  Index size() const { return size_; }

  /// Extent of an axis; negative axes count from the last, -1. Throws ShapeError outside the rank.
  Index operator[](int axis) const { return extents_[axis_index(axis)]; }
  /// The axis counted from 0. Throws ShapeError outside the rank.
  int axis_index(int axis) const;

  std::span<const Index> extents() const { return {extents_.data(), static_cast<std::size_t>(rank_)}; }
  /// This shape with one extent replaced.
  Shape with(int axis, Index extent) const;

  /// "(2, 3, 4)"
  std::string to_string() const;

  friend bool operator==(const Shape& a, const Shape& b) {
    return a.rank_ == b.rank_ && std::equal(a.extents().begin(), a.extents().end(), b.extents().begin());
  }

 private:
  std::array<Index, max_rank> extents_{};
  Index size_ = 1;
  int rank_ = 0;
};

/// a * b, for counts of 0 and more. Throws RangeError, which names `what`, if the product does not fit in 63 bits.
Index checked_product(Index a, Index b, const char* what);

/// The common shape of two operands: axes are matched from the last, extents must be equal or 1. Throws ShapeError,
/// which names `operation`.
Shape broadcast_shape(const Shape& a, const Shape& b, const char* operation);

}  // namespace handgrad
