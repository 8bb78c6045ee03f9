#pragma once

#include "handgrad/core/tensor.h"

namespace handgrad {

/// A non-owning boolean array: 0 is false, every other value true.
using MaskRef = View<const std::uint8_t>;
/// An owning boolean array.
using Mask = Tensor<std::uint8_t>;

}  // namespace handgrad
