#include "handgrad/ops/mean.h"

#include "core/instantiate.h"
#include "ops/reduce.h"

namespace handgrad {

template <class S>
void mean_forward(View<const S> x, S& y) {
  y = from_accumulator<S>(total_of("mean_forward", x) / static_cast<double>(x.shape.size()));
}

// dx += dy / n
template <class S>
void mean_backward(S dy, View<S> dx) {
  add_to_all("mean_backward", dy / static_cast<S>(dx.shape.size()), dx);
}

template <class S>
Var<S> mean(Var<S> x) {
  require_operands("mean", x);
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
