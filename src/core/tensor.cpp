#include "handgrad/core/tensor.h"

#include <fmt/format.h>

#include "handgrad/core/errors.h"

namespace handgrad::detail {

void refuse_values(const Shape& shape, Index count) {
  throw ShapeError(fmt::format("tensor {}: {} values are needed, got {}", shape.to_string(), shape.size(), count));
}

void refuse_empty_tensor() {
  throw ShapeError("tensor: a tensor with elements is needed, got an empty one (default-constructed or moved from)");
}

void refuse_element(Index i, Index size) {
  throw RangeError(fmt::format("tensor: the index must be in [0, {}), got {}", size, i));
}

}  // namespace handgrad::detail
