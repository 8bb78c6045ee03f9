#include "handgrad/ops/relu.h"

#include "core/instantiate.h"
#include "core/math.h"
#include "handgrad/autograd/output.h"
#include "ops/check.h"
#include "ops/elementwise.h"

namespace handgrad {
namespace {

template <class S>
S value(S x) {
  return real_part(x) < 0 ? S(0) : x;
}

// y' = 1 for x > 0, else 0; at the kink, x = 0, the slope is taken as 0
template <class S>
S slope(S x) {
  return real_part(x) <= 0 ? S(0) : S(1);
}

}  // namespace

template <class S>
void relu_forward(Rows<const S> x, Rows<S> y) {
  require_rows("relu_forward", x.rows, x.cols, x, y);
  map_forward<S>(x, y, [](S v) { return value(v); });
}

// dx += dy for x > 0; at the kink, x = 0, the slope is taken as 0
template <class S>
void relu_backward(Rows<const S> x, Rows<const S> dy, Rows<S> dx) {
  require_rows("relu_backward", x.rows, x.cols, x, dy, dx);
  map_backward<S>(x, dy, dx, [](S v) { return slope(v); });
}

template <class S>
Var<S> relu(Var<S> x) {
  auto y = output("relu", x.shape(), x);
  relu_forward<S>(x.rows("relu"), y.rows());
  return y.saves(x).on_backward([](const auto& saved, auto dy, auto dx) {
    const auto& [x_saved] = saved;
    relu_backward<S>(x_saved.rows(), dy.rows(), dx.rows());
  });
}

#define HANDGRAD_INSTANTIATE(S)                          \
  template void relu_forward<S>(Rows<const S>, Rows<S>); \
  template Var<S> relu<S>(Var<S>);
HANDGRAD_FOR_ALL_SCALARS(HANDGRAD_INSTANTIATE)
#undef HANDGRAD_INSTANTIATE
#define HANDGRAD_INSTANTIATE(S) template void relu_backward<S>(Rows<const S>, Rows<const S>, Rows<S>);
HANDGRAD_FOR_REAL_SCALARS(HANDGRAD_INSTANTIATE)
#undef HANDGRAD_INSTANTIATE

}  // namespace handgrad
