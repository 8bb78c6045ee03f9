#include "handgrad/ops/relu.h"

#include "ops/unary.h"

namespace handgrad {
namespace {

struct Relu {
  template <class S>
  static S value(S x) {
    return real_part(x) < 0 ? S(0) : x;
  }

  // dx += dy for x > 0; at the kink, x = 0, the slope is taken as 0
  template <class S>
  static S slope(S x) {
    return real_part(x) <= 0 ? S(0) : S(1);
  }
};

}  // namespace

HANDGRAD_UNARY(relu, Relu)

}  // namespace handgrad
