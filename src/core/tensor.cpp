#include "handgrad/core/tensor.h"

#include <fmt/format.h>

#include "handgrad/core/errors.h"

namespace handgrad::detail {

void refuse_values(const Shape& shape, Index count) {
  throw ShapeError(fmt::format("tensor {}: takes {} values, got {}", shape.to_string(), shape.size(), count));
}

void refuse_empty_tensor() {
  throw ShapeError("tensor: a tensor with elements is needed, got one that is default-made or moved from");
}

void refuse_element(Index i, Index size) {
  throw RangeError(fmt::format("tensor: an element of [0, {}) is needed, got {}", size, i));
}

}  // namespace handgrad::detail
