#include "handgrad/ops/contiguous.h"

#include "core/instantiate.h"
#include "handgrad/autograd/output.h"
#include "ops/broadcast.h"
#include "ops/check.h"

namespace handgrad {

template <class S>
void contiguous_forward(View<const S> x, View<S> y) {
  require_shape("contiguous_forward", y.shape, x, y);
  for_each_element(y, x, x, [](S& out, const S& in, const S&) { out = in; });
}

// dx += dy
template <class S>
void contiguous_backward(View<const S> dy, View<S> dx) {
  require_shape("contiguous_backward", dx.shape, dy, dx);
  for_each_element(dx, dy, dy, [](S& to, const S& upstream, const S&) { to += upstream; });
}

template <class S>
Var<S> contiguous(Var<S> x) {
  require_operands("contiguous", x);
  auto y = output("contiguous", x.shape(), x);
  contiguous_forward<S>(x.view(), y.view());
  return y.saves().on_backward([](const auto&, auto dy, auto dx) { contiguous_backward<S>(dy, dx); });
}

#define HANDGRAD_INSTANTIATE(S)                                \
  template void contiguous_forward<S>(View<const S>, View<S>); \
  template Var<S> contiguous<S>(Var<S>);
HANDGRAD_FOR_ALL_SCALARS(HANDGRAD_INSTANTIATE)
#undef HANDGRAD_INSTANTIATE
#define HANDGRAD_INSTANTIATE(S) template void contiguous_backward<S>(View<const S>, View<S>);
HANDGRAD_FOR_REAL_SCALARS(HANDGRAD_INSTANTIATE)
#undef HANDGRAD_INSTANTIATE

}  // namespace handgrad
