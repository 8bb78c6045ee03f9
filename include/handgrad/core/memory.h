#pragma once

#include "handgrad/core/types.h"

namespace handgrad {

/// An estimate of the bytes that this process can still allocate: the smallest of the free memory of the machine (swap
/// included), the limits of its control groups, and its own limits (RLIMIT_AS, RLIMIT_DATA). The largest Index if none
/// is known.
Index available_memory_bytes();

}  // namespace handgrad
