#include "handgrad/ops/gelu_tanh.h"

#include "ops/unary.h"

namespace handgrad {
namespace {

constexpr double k = 0.79788456080286535588;  // sqrt(2 / pi)
constexpr double c = 0.044715;

template <class S>
S twice_u(S x) {
  return constant<S>(2 * k) * (x + constant<S>(c) * x * x * x);
}

struct GeluTanh {
  template <class S>
  static S value(S x) {
    return x * sigmoid(twice_u(x));
  }

  // dx += dy (s + x s (1 - s) 2 du/dx),  du/dx = sqrt(2/pi) (1 + 3 x 0.044715 x^2)
  template <class S>
  static S slope(S x) {
    const S s = sigmoid(twice_u(x));
    const S bend = s * (S(1) - s);
    const S slope = constant<S>(2 * k) * (S(1) + constant<S>(3 * c) * x * x);
    return bend == S(0) ? s : s + x * bend * slope;  // bend is 0 where s rounds to 0 or 1; there x^2 may overflow
  }
};

}  // namespace

HANDGRAD_UNARY(gelu_tanh, GeluTanh)

}  // namespace handgrad
