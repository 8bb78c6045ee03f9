#include "handgrad/autograd/arena.h"

#include "handgrad/core/errors.h"

namespace handgrad {

void detail::refuse_alignment() { throw RangeError("arena: the alignment must be 1 or more, got 0"); }

}  // namespace handgrad
