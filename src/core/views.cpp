#include "handgrad/core/views.h"

#include <fmt/format.h>

#include "handgrad/core/errors.h"

namespace handgrad {

Strides contiguous_strides(const Shape& shape) {
  Strides strides{};
  Index step = 1;
  for (int i = shape.rank() - 1; i >= 0; --i) {
    strides[i] = step;
    step *= shape[i];
  }
  return strides;
}

namespace detail {

Index joined_row_stride(const Shape& shape, const Strides& strides) {
  const int rank = shape.rank();
  if (rank == 0) return -1;
  if (shape[-1] > 1 && strides[rank - 1] != 1) return -1;
  Index stride = 0;  // 0: every row axis so far has extent 1
  Index joined = 1;
  for (int i = rank - 2; i >= 0; --i) {
    if (shape[i] == 1) continue;
    const Index own = strides[i];
    if (stride == 0) {
      stride = own;
    } else if (own != stride * joined) {
      return -1;
    }
    joined *= shape[i];
  }
  return stride == 0 ? shape[-1] : stride;
}

void refuse_rows(const Shape& shape, const char* operation) {
  if (shape.rank() == 0) {
    throw ShapeError(
        fmt::format("{}: a value of rank 1 or more is needed, got (); reshape({{1}}) makes one", operation));
  }
  throw ShapeError(
      fmt::format("{}: rows of adjacent elements are needed, got a transposed or sliced view {}; make a copy with "
                  "contiguous()",
                  operation, shape.to_string()));
}

void refuse_heads(const Shape& shape, const char* operation) {
  throw ShapeError(fmt::format("{}: heads (batch, time, head, width) with adjacent widths are needed, got {}",
                               operation, shape.to_string()));
}

void refuse_elements(const Shape& shape, const char* operation) {
  throw ShapeError(
      fmt::format("{}: elements that are adjacent in row-major order are needed, got a view {}; make a "
                  "copy with contiguous()",
                  operation, shape.to_string()));
}

}  // namespace detail
}  // namespace handgrad
