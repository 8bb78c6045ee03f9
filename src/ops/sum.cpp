#include "handgrad/ops/sum.h"

#include "core/instantiate.h"
#include "ops/reduce.h"

namespace handgrad {

template <class S>
void sum_forward(View<const S> x, S& y) {
  y = from_accumulator<S>(total_of("sum_forward", x));
}

// dx += dy
template <class S>
void sum_backward(S dy, View<S> dx) {
  add_to_all("sum_backward", dy, dx);
}

template <class S>
Var<S> sum(Var<S> x) {
  require_operands("sum", x);
  auto y = output("sum", Shape{}, x);
  sum_forward<S>(x.view(), *y.data());
  return y.saves().on_backward([](const auto&, auto dy, auto dx) { sum_backward<S>(*dy.data, dx); });
}

#define HANDGRAD_INSTANTIATE(S)                    \
  template void sum_forward<S>(View<const S>, S&); \
  template Var<S> sum<S>(Var<S>);
HANDGRAD_FOR_ALL_SCALARS(HANDGRAD_INSTANTIATE)
#undef HANDGRAD_INSTANTIATE
#define HANDGRAD_INSTANTIATE(S) template void sum_backward<S>(S, View<S>);
HANDGRAD_FOR_REAL_SCALARS(HANDGRAD_INSTANTIATE)
#undef HANDGRAD_INSTANTIATE

}  // namespace handgrad
