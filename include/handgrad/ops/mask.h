#pragma once

#include "handgrad/core/tensor.h"

namespace handgrad {

/// A boolean array (0 is false, all else true), non-owning. Its owner must outlive what reads it.
using MaskRef = View<const std::uint8_t>;
/// A boolean array that owns its memory.
using Mask = Tensor<std::uint8_t>;

}  // namespace handgrad
