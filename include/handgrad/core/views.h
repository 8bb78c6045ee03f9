#pragma once

#include <array>
#include <span>
#include <type_traits>

#include "handgrad/core/shape.h"

namespace handgrad {

/// A non-owning matrix: `rows` rows of `cols` adjacent elements, whose starts are `stride` elements apart.
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

/// Non-owning heads of attention, (batch, time, head, width): `width` elements are adjacent, and the other axes have
/// strides, so that Q, K and V can be read in place from a packed projection.
template <class T>
struct Heads {
  T* data = nullptr;
  Index batch = 0, time = 0, heads = 0, width = 0;
  Index batch_stride = 0, time_stride = 0, head_stride = 0;

  T* at(Index b, Index t, Index h) const { return data + b * batch_stride + t * time_stride + h * head_stride; }
  /// One head of one sequence: a row for each time.
  Rows<T> head(Index b, Index h) const { return {at(b, 0, h), time, width, time_stride}; }
  explicit operator bool() const { return data != nullptr; }
  operator Heads<const T>() const requires(!std::is_const_v<T>) {
    return {data, batch, time, heads, width, batch_stride, time_stride, head_stride};
  }
};

using Strides = std::array<Index, Shape::max_rank>;

/// Strides of a row-major array without gaps.
Strides contiguous_strides(const Shape& shape);

/// A non-owning array of any rank, valid as long as its owner holds the memory. A view of a tape's value is valid until
/// Tape::reset(). This is not checked; with Tape::poison_memory() a later read gives NaN.
template <class T>
struct View {
  T* data = nullptr;
  Shape shape;
  Strides strides{};

  explicit operator bool() const { return data != nullptr; }
  operator View<const T>() const requires(!std::is_const_v<T>) { return {data, shape, strides}; }

  /// Rank 1 or more: the last axis as columns, all others as rows. Throws ShapeError, which names `operation`, if the
  /// memory does not have this layout.
  Rows<T> rows(const char* operation = "view") const;
  /// Rank 4: (batch, time, head, width). Throws ShapeError, which names `operation`, for another rank and if the
  /// elements of the last axis are not adjacent.
  Heads<T> heads(const char* operation = "view") const;
  /// True if the elements are adjacent, in row-major order.
  bool is_contiguous() const;
  /// The elements of a contiguous view, or of an empty one (none). Throws ShapeError, which names `operation`, for
  /// others.
  std::span<T> elements(const char* operation = "view") const;
};

namespace detail {
/// Stride of the rows when all axes but the last are joined; -1 if they cannot be joined.
Index joined_row_stride(const Shape& shape, const Strides& strides);
[[noreturn]] void refuse_rows(const Shape& shape, const char* operation);
[[noreturn]] void refuse_heads(const Shape& shape, const char* operation);
[[noreturn]] void refuse_elements(const Shape& shape, const char* operation);
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
Heads<T> View<T>::heads(const char* operation) const {
  if (!data) return {};
  if (shape.rank() != 4 || (shape[3] > 1 && strides[3] != 1)) detail::refuse_heads(shape, operation);
  return {data, shape[0], shape[1], shape[2], shape[3], strides[0], strides[1], strides[2]};
}

template <class T>
bool View<T>::is_contiguous() const {
  Index expected = 1;
  for (int i = shape.rank() - 1; i >= 0; --i) {
    if (shape[i] > 1 && strides[i] != expected) return false;
    expected *= shape[i];
  }
  return true;
}

template <class T>
std::span<T> View<T>::elements(const char* operation) const {
  if (!data) return {};
  if (!is_contiguous()) detail::refuse_elements(shape, operation);
  return {data, static_cast<std::size_t>(shape.size())};
}

}  // namespace handgrad
