#pragma once

#include <fmt/format.h>

#include <initializer_list>
#include <string>
#include <type_traits>
#include <utility>

#include "handgrad/core/errors.h"
#include "handgrad/core/views.h"

// Checks of arguments. The cost of a check does not depend on the size of the arrays.

namespace handgrad {

/// Throws ShapeError unless all matrices have memory and are rows x cols.
template <class... T>
void require_rows(const char* kernel, Index rows, Index cols, const Rows<T>&... matrices) {
  const bool fit =
      rows > 0 && cols > 0 && ((matrices.data != nullptr && matrices.rows == rows && matrices.cols == cols) && ...);
  if (fit) return;
  std::string got;
  ((got += fmt::format("{}({}, {})", got.empty() ? "" : ", ", matrices.rows, matrices.cols)), ...);
  throw ShapeError(fmt::format("{}: matrices ({}, {}) with memory are needed, got {}", kernel, rows, cols, got));
}

/// Throws ShapeError unless all views have memory and this shape.
template <class... T>
void require_shape(const char* kernel, const Shape& shape, const View<T>&... views) {
  if (((views.data != nullptr && views.shape == shape) && ...)) return;
  std::string got;
  ((got += fmt::format("{}{}{}", got.empty() ? "" : ", ", views.data ? "" : "no ", views.shape.to_string())), ...);
  throw ShapeError(fmt::format("{}: values {} with memory are needed, got {}", kernel, shape.to_string(), got));
}

/// Throws ShapeError unless the view has memory and broadcasts to this shape.
template <class T>
void require_broadcast(const char* kernel, const Shape& shape, const View<T>& view) {
  if (view.data != nullptr && broadcast_shape(view.shape, shape, kernel) == shape) return;
  throw ShapeError(fmt::format("{}: a value that broadcasts to {} is needed, got {}{}", kernel, shape.to_string(),
                               view.data ? "" : "no ", view.shape.to_string()));
}

/// Throws Error, which names `operation`, if an operand is an empty handle, or if two operands have different tapes.
template <class Var, class... Vars>
void require_operands(const char* operation, const Var& first, const Vars&... others) {
  int number = 0;
  const auto check = [&](bool present) {
    if (!present) throw Error(fmt::format("{}: operand {} is an empty handle", operation, number));
    ++number;
  };
  check(static_cast<bool>(first));
  (check(static_cast<bool>(others)), ...);
  if (((&others.graph() != &first.graph()) || ...)) {
    throw Error(fmt::format("{}: the operands belong to different tapes", operation));
  }
}

/// Throws ShapeError, which names `operation`, for a value of rank 0.
inline void require_last_axis(const char* operation, const Shape& shape) {
  if (shape.rank() > 0) return;
  throw ShapeError(fmt::format("{}: a value of rank 1 or more is needed, got (); reshape({{1}}) makes one", operation));
}

/// The axis counted from the first. Throws ShapeError, which names `operation`, if the shape has no such axis.
inline int require_axis(const char* operation, const Shape& shape, int axis) {
  const int rank = shape.rank();
  if (axis < -rank || axis >= rank) {
    throw ShapeError(fmt::format("{}: axis {} is outside {}", operation, axis, shape.to_string()));
  }
  return axis < 0 ? axis + rank : axis;
}

/// Throws ShapeError unless an array of the kernel has `size` elements.
inline void require_size(const char* kernel, const char* array, std::size_t found, Index size) {
  if (std::cmp_equal(found, size)) return;
  throw ShapeError(fmt::format("{}: {} of {} elements are needed, got {}", kernel, array, size, found));
}

/// Throws ShapeError if one of the pointers is null.
inline void require_memory(const char* kernel, std::initializer_list<const void*> pointers) {
  for (const void* pointer : pointers) {
    if (!pointer) throw ShapeError(fmt::format("{}: memory for every array is needed, got a null pointer", kernel));
  }
}

/// Throws RangeError unless value >= least; also for NaN.
template <class T>
void require_at_least(const char* kernel, const char* what, T value, std::type_identity_t<T> least) {
  if (!(value >= least))
    throw RangeError(fmt::format("{}: {} must be at least {}, got {}", kernel, what, least, value));
}

}  // namespace handgrad
