#pragma once

#include <fmt/format.h>

#include <initializer_list>
#include <string>

#include "handgrad/core/errors.h"
#include "handgrad/core/views.h"

// What kernels ask of their arguments. A call costs a few comparisons, whatever the size of the arrays.

namespace handgrad {

/// Throws ShapeError unless every one of the matrices has memory and is rows x cols.
template <class... T>
void require_rows(const char* kernel, Index rows, Index cols, const Rows<T>&... matrices) {
  const bool fit =
      rows > 0 && cols > 0 && ((matrices.data != nullptr && matrices.rows == rows && matrices.cols == cols) && ...);
  if (fit) return;
  std::string got;
  ((got += fmt::format("{}({}, {})", got.empty() ? "" : ", ", matrices.rows, matrices.cols)), ...);
  throw ShapeError(fmt::format("{}: matrices ({}, {}) with memory are needed, got {}", kernel, rows, cols, got));
}

/// Throws ShapeError unless every one of the views has memory and this shape.
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

/// Throws ShapeError if one of the pointers is null.
inline void require_memory(const char* kernel, std::initializer_list<const void*> pointers) {
  for (const void* pointer : pointers) {
    if (!pointer) throw ShapeError(fmt::format("{}: memory for every array is needed, got a null pointer", kernel));
  }
}

/// Throws RangeError unless `value` is at least `least`; false for a NaN.
inline void require_at_least(const char* kernel, const char* what, double value, double least) {
  if (!(value >= least))
    throw RangeError(fmt::format("{}: {} must be at least {}, got {}", kernel, what, least, value));
}

}  // namespace handgrad
