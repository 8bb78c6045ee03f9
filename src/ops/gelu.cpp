#include "handgrad/ops/gelu.h"

#include "core/instantiate.h"
#include "core/math.h"
#include "handgrad/autograd/output.h"
#include "ops/check.h"
#include "ops/elementwise.h"

namespace handgrad {
namespace {

template <class S>
S value(S x) {
  return x * normal_cdf(x);
}

// y' = Phi(x) + x phi(x),  phi(x) = exp(-x^2/2) / sqrt(2 pi)
template <class S>
S slope(S x) {
  return normal_cdf(x) + x * normal_density(x);
}

}  // namespace

template <class S>
void gelu_forward(Rows<const S> x, Rows<S> y) {
  require_rows("gelu_forward", x.rows, x.cols, x, y);
  map_forward<S>(x, y, [](S v) { return value(v); });
}

// dx += dy (Phi(x) + x phi(x)),  phi(x) = exp(-x^2/2) / sqrt(2 pi)
template <class S>
void gelu_backward(Rows<const S> x, Rows<const S> dy, Rows<S> dx) {
  require_rows("gelu_backward", x.rows, x.cols, x, dy, dx);
  map_backward<S>(x, dy, dx, [](S v) { return slope(v); });
}

template <class S>
Var<S> gelu(Var<S> x) {
  auto y = output("gelu", x.shape(), x);
  gelu_forward<S>(x.rows("gelu"), y.rows());
  return y.saves(x).on_backward([](const auto& saved, auto dy, auto dx) {
    const auto& [x_saved] = saved;
    gelu_backward<S>(x_saved.rows(), dy.rows(), dx.rows());
  });
}

#define HANDGRAD_INSTANTIATE(S)                          \
  template void gelu_forward<S>(Rows<const S>, Rows<S>); \
  template Var<S> gelu<S>(Var<S>);
HANDGRAD_FOR_ALL_SCALARS(HANDGRAD_INSTANTIATE)
#undef HANDGRAD_INSTANTIATE
#define HANDGRAD_INSTANTIATE(S) template void gelu_backward<S>(Rows<const S>, Rows<const S>, Rows<S>);
HANDGRAD_FOR_REAL_SCALARS(HANDGRAD_INSTANTIATE)
#undef HANDGRAD_INSTANTIATE

}  // namespace handgrad
