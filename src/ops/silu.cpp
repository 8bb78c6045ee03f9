#include "handgrad/ops/silu.h"

#include "ops/unary.h"

namespace handgrad {
namespace {

struct Silu {
  template <class S>
  static S value(S x) {
    return x * sigmoid(x);
  }

  // dx += dy s (1 + x (1 - s)),  s = sigmoid(x)
  template <class S>
  static S slope(S x) {
    const S s = sigmoid(x);
    return s * (S(1) + x * (S(1) - s));
  }
};

}  // namespace

HANDGRAD_UNARY(silu, Silu)

}  // namespace handgrad
