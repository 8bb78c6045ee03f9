#include "handgrad/core/tensor.h"

#include <fmt/format.h>

#include "handgrad/core/errors.h"

namespace handgrad::detail {

void refuse_values(const Shape& shape, Index count) {
  throw ShapeError(fmt::format("tensor {}: takes {} values, got {}", shape.to_string(), shape.size(), count));
}

}  // namespace handgrad::detail
