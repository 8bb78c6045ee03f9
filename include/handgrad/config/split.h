#pragma once

#include <string>

#include "handgrad/config/config.h"
#include "handgrad/core/types.h"

namespace handgrad {

/// Sequences in a block, the unit in which gradients are summed: ceil(256 / context). Throws RangeError for a context
/// below 1.
Index block_sequences(Index context);

/// One line if the bits of a run depend on how its batches are split into micro-batches: train.accumulation is above 1
/// and train.batch_size is no multiple of a block. Empty otherwise. Throws ConfigError for a config that is not valid.
std::string split_note(const Config& config);

}  // namespace handgrad
