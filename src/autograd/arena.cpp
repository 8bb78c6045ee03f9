#include "handgrad/autograd/arena.h"

#include "handgrad/core/errors.h"

namespace handgrad {

void detail::refuse_alignment() { throw RangeError("arena: an alignment of 1 or more is needed, got 0"); }

}  // namespace handgrad
