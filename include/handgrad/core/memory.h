#pragma once

#include "handgrad/core/types.h"

namespace handgrad {

/// Bytes that this process may still take, about: what the machine has free (swap included), less where a control group
/// or a limit of the process (RLIMIT_AS, RLIMIT_DATA) allows less. The largest Index where nothing is known.
Index available_memory_bytes();

}  // namespace handgrad
