#include "handgrad/ops/mean.h"

#include "core/instantiate.h"
#include "core/math.h"
#include "handgrad/autograd/output.h"
#include "ops/broadcast.h"
#include "ops/check.h"

namespace handgrad {

template <class S>
void mean_forward(View<const S> x, S& y) {
  require_shape("mean_forward", x.shape, x);
  const Index cols = last_extent(x), stride = last_stride(x);
  Accumulator<S> total{};
  for (Index r = 0; r < x.shape.size() / cols; ++r) {
    const S* row = row_start(x, r);
    for (Index c = 0; c < cols; ++c) total += row[c * stride];
  }
  y = from_accumulator<S>(total / static_cast<double>(x.shape.size()));
}

// dx += dy / n
template <class S>
void mean_backward(S dy, View<S> dx) {
  require_shape("mean_backward", dx.shape, dx);
  const S share = dy / static_cast<S>(dx.shape.size());
  const View<const S> any = dx;
  for_each_element(dx, any, any, [share](S& to, const S&, const S&) { to += share; });
}

template <class S>
Var<S> mean(Var<S> x) {
  auto y = output("mean", Shape{}, x);
  mean_forward<S>(x.view(), *y.data());
  return y.saves().on_backward([](const auto&, auto dy, auto dx) { mean_backward<S>(*dy.data, dx); });
}

#define HANDGRAD_INSTANTIATE(S)                     \
  template void mean_forward<S>(View<const S>, S&); \
  template Var<S> mean<S>(Var<S>);
HANDGRAD_FOR_ALL_SCALARS(HANDGRAD_INSTANTIATE)
#undef HANDGRAD_INSTANTIATE
#define HANDGRAD_INSTANTIATE(S) template void mean_backward<S>(S, View<S>);
HANDGRAD_FOR_REAL_SCALARS(HANDGRAD_INSTANTIATE)
#undef HANDGRAD_INSTANTIATE

}  // namespace handgrad
