#include "handgrad/ops/gelu_tanh.h"

#include "core/instantiate.h"
#include "core/math.h"
#include "handgrad/autograd/output.h"
#include "ops/check.h"
#include "ops/elementwise.h"

namespace handgrad {
namespace {

constexpr double k = 0.79788456080286535588;  // sqrt(2 / pi)
constexpr double c = 0.044715;

template <class S>
S twice_u(S x) {
  return constant<S>(2 * k) * (x + constant<S>(c) * x * x * x);
}

template <class S>
S value(S x) {
  return x * sigmoid(twice_u(x));
}

// y' = s + x s (1 - s) 2 du/dx,  du/dx = sqrt(2/pi) (1 + 3 x 0.044715 x^2)
template <class S>
S slope(S x) {
  const S s = sigmoid(twice_u(x));
  const S bend = s * (S(1) - s);
  const S slope = constant<S>(2 * k) * (S(1) + constant<S>(3 * c) * x * x);
  return bend == S(0) ? s : s + x * bend * slope;  // where s is 0 or 1 to rounding, x^2 may overflow
}

}  // namespace

template <class S>
void gelu_tanh_forward(Rows<const S> x, Rows<S> y) {
  require_rows("gelu_tanh_forward", x.rows, x.cols, x, y);
  map_forward<S>(x, y, [](S v) { return value(v); });
}

// dx += dy (s + x s (1 - s) 2 du/dx),  du/dx = sqrt(2/pi) (1 + 3 x 0.044715 x^2)
template <class S>
void gelu_tanh_backward(Rows<const S> x, Rows<const S> dy, Rows<S> dx) {
  require_rows("gelu_tanh_backward", x.rows, x.cols, x, dy, dx);
  map_backward<S>(x, dy, dx, [](S v) { return slope(v); });
}

template <class S>
Var<S> gelu_tanh(Var<S> x) {
  auto y = output("gelu_tanh", x.shape(), x);
  gelu_tanh_forward<S>(x.rows("gelu_tanh"), y.rows());
  return y.saves(x).on_backward([](const auto& saved, auto dy, auto dx) {
    const auto& [x_saved] = saved;
    gelu_tanh_backward<S>(x_saved.rows(), dy.rows(), dx.rows());
  });
}

#define HANDGRAD_INSTANTIATE(S)                               \
  template void gelu_tanh_forward<S>(Rows<const S>, Rows<S>); \
  template Var<S> gelu_tanh<S>(Var<S>);
HANDGRAD_FOR_ALL_SCALARS(HANDGRAD_INSTANTIATE)
#undef HANDGRAD_INSTANTIATE
#define HANDGRAD_INSTANTIATE(S) template void gelu_tanh_backward<S>(Rows<const S>, Rows<const S>, Rows<S>);
HANDGRAD_FOR_REAL_SCALARS(HANDGRAD_INSTANTIATE)
#undef HANDGRAD_INSTANTIATE

}  // namespace handgrad
