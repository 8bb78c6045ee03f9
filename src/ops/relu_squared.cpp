#include "handgrad/ops/relu_squared.h"

#include "ops/unary.h"

namespace handgrad {
namespace {

struct ReluSquared {
  template <class S>
  static S value(S x) {
    return real_part(x) < 0 ? S(0) : x * x;
  }

  // dx += dy 2x for x > 0, else 0
  template <class S>
  static S slope(S x) {
    return real_part(x) < 0 ? S(0) : x + x;
  }
};

}  // namespace

HANDGRAD_UNARY(relu_squared, ReluSquared)

}  // namespace handgrad
