#pragma once

#include <string>

#include "handgrad/config/config.h"
#include "handgrad/core/types.h"

namespace handgrad {

/// Sequences per block, the unit of sums of gradients: ceil(256 / context). Throws RangeError for a context below 1.
Index block_sequences(Index context);

/// One line if the bits of a run depend on the split of its batches into micro-batches: train.accumulation is above 1
/// and train.batch_size is not a multiple of a block. Else empty. Throws ConfigError for an invalid config.
std::string split_note(const Config& config);

}  // namespace handgrad
