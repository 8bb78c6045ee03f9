#include "handgrad/autograd/output.h"

#include <fmt/format.h>

#include "handgrad/core/errors.h"

namespace handgrad {

void detail::refuse_no_input(const char* operation) {
  throw Error(fmt::format("{}: operand 0 is an empty handle", operation));
}

}  // namespace handgrad
