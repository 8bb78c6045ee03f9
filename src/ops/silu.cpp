#include "handgrad/ops/silu.h"

#include "core/instantiate.h"
#include "core/math.h"
#include "handgrad/autograd/output.h"
#include "ops/check.h"
#include "ops/elementwise.h"

namespace handgrad {
namespace {

template <class S>
S value(S x) {
  return x * sigmoid(x);
}

// y' = s (1 + x (1 - s))
template <class S>
S slope(S x) {
  const S s = sigmoid(x);
  return s * (S(1) + x * (S(1) - s));
}

}  // namespace

template <class S>
void silu_forward(Rows<const S> x, Rows<S> y) {
  require_rows("silu_forward", x.rows, x.cols, x, y);
  map_forward<S>(x, y, [](S v) { return value(v); });
}

// dx += dy s (1 + x (1 - s))
template <class S>
void silu_backward(Rows<const S> x, Rows<const S> dy, Rows<S> dx) {
  require_rows("silu_backward", x.rows, x.cols, x, dy, dx);
  map_backward<S>(x, dy, dx, [](S v) { return slope(v); });
}

template <class S>
Var<S> silu(Var<S> x) {
  auto y = output("silu", x.shape(), x);
  silu_forward<S>(x.rows("silu"), y.rows());
  return y.saves(x).on_backward([](const auto& saved, auto dy, auto dx) {
    const auto& [x_saved] = saved;
    silu_backward<S>(x_saved.rows(), dy.rows(), dx.rows());
  });
}

#define HANDGRAD_INSTANTIATE(S)                          \
  template void silu_forward<S>(Rows<const S>, Rows<S>); \
  template Var<S> silu<S>(Var<S>);
HANDGRAD_FOR_ALL_SCALARS(HANDGRAD_INSTANTIATE)
#undef HANDGRAD_INSTANTIATE
#define HANDGRAD_INSTANTIATE(S) template void silu_backward<S>(Rows<const S>, Rows<const S>, Rows<S>);
HANDGRAD_FOR_REAL_SCALARS(HANDGRAD_INSTANTIATE)
#undef HANDGRAD_INSTANTIATE

}  // namespace handgrad
