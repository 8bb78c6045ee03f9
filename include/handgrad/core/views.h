#pragma once

#include <array>
#include <type_traits>

#include "handgrad/core/shape.h"

namespace handgrad {

/// A matrix in somebody else's memory: `rows` rows of `cols` adjacent elements, `stride` elements apart.
template <class T>
struct Rows {
  T* data = nullptr;
  Index rows = 0;
  Index cols = 0;
  Index stride = 0;

  T* row(Index r) const { return data + r * stride; }
  /// Rows [begin, begin + count).
  Rows slice(Index begin, Index count) const { return {row(begin), count, cols, stride}; }
  /// Columns [begin, begin + count).
  Rows columns(Index begin, Index count) const { return {data + begin, rows, count, stride}; }
  explicit operator bool() const { return data != nullptr; }
  operator Rows<const T>() const requires(!std::is_const_v<T>) { return {data, rows, cols, stride}; }
};

/// Heads of attention in somebody else's memory, (batch, time, head, width): `width` elements are adjacent, the other
/// axes have strides, so that Q, K and V are read straight out of a packed projection.
template <class T>
struct Heads {
  T* data = nullptr;
  Index batch = 0, time = 0, heads = 0, width = 0;
  Index batch_stride = 0, time_stride = 0, head_stride = 0;

  T* at(Index b, Index t, Index h) const { return data + b * batch_stride + t * time_stride + h * head_stride; }
  /// All times of one head of one sequence.
  Rows<T> head(Index b, Index h) const { return {at(b, 0, h), time, width, time_stride}; }
  explicit operator bool() const { return data != nullptr; }
  operator Heads<const T>() const requires(!std::is_const_v<T>) {
    return {data, batch, time, heads, width, batch_stride, time_stride, head_stride};
  }
};

using Strides = std::array<Index, Shape::max_rank>;

/// Strides of a dense row-major array.
Strides contiguous_strides(const Shape& shape);

/// An array of any rank, non-owning: it is good as long as its owner holds the memory. A view of a tape's value is good
/// until Tape::reset(), and nothing checks that; Tape::poison_memory() makes late reads show as NaN.
template <class T>
struct View {
  T* data = nullptr;
  Shape shape;
  Strides strides{};

  explicit operator bool() const { return data != nullptr; }
  operator View<const T>() const requires(!std::is_const_v<T>) { return {data, shape, strides}; }

  /// Rank 1 and above: the last axis as columns, all others as rows. Throws ShapeError, naming `operation`, if the
  /// memory is not laid out so.
  Rows<T> rows(const char* operation = "view") const;
  /// Rank 4: (batch, time, head, width). Throws ShapeError otherwise, or if the last axis is not adjacent.
  Heads<T> heads() const;
  /// True if the elements are adjacent, in row-major order.
  bool is_contiguous() const;
};

namespace detail {
/// Stride of the rows when all axes but the last are joined; -1 if they cannot be joined.
Index joined_row_stride(const Shape& shape, const Strides& strides);
[[noreturn]] void refuse_rows(const Shape& shape, const char* operation);
[[noreturn]] void refuse_heads(const Shape& shape);
}  // namespace detail

template <class T>
Rows<T> View<T>::rows(const char* operation) const {
  if (!data) return {};
  const Index stride = detail::joined_row_stride(shape, strides);
  if (stride < 0) detail::refuse_rows(shape, operation);
  const Index cols = shape[-1];
  return {data, shape.size() / cols, cols, stride};
}

template <class T>
Heads<T> View<T>::heads() const {
  if (!data) return {};
  if (shape.rank() != 4 || (shape[3] > 1 && strides[3] != 1)) detail::refuse_heads(shape);
  return {data, shape[0], shape[1], shape[2], shape[3], strides[0], strides[1], strides[2]};
}

template <class T>
bool View<T>::is_contiguous() const {
  Index expected = 1;
  for (int i = shape.rank() - 1; i >= 0; --i) {
    if (shape[i] > 1 && strides[static_cast<std::size_t>(i)] != expected) return false;
    expected *= shape[i];
  }
  return true;
}

}  // namespace handgrad
