#include "handgrad/ops/gelu.h"

#include "ops/unary.h"

namespace handgrad {
namespace {

struct Gelu {
  template <class S>
  static S value(S x) {
    return x * normal_cdf(x);
  }

  // dx += dy (Phi(x) + x phi(x)),  phi(x) = exp(-x^2/2) / sqrt(2 pi)
  template <class S>
  static S slope(S x) {
    return normal_cdf(x) + x * normal_density(x);
  }
};

}  // namespace

HANDGRAD_UNARY(gelu, Gelu)

}  // namespace handgrad
