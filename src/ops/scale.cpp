#include "handgrad/ops/scale.h"

#include "core/instantiate.h"
#include "core/math.h"
#include "handgrad/autograd/output.h"
#include "ops/check.h"
#include "ops/elementwise.h"

namespace handgrad {

template <class S>
void scale_forward(Rows<const S> x, double factor, Rows<S> y) {
  require_rows("scale_forward", x.rows, x.cols, x, y);
  map_forward<S>(x, y, [f = constant<S>(factor)](S v) { return f * v; });
}

// dx += factor dy
template <class S>
void scale_backward(Rows<const S> dy, double factor, Rows<S> dx) {
  require_rows("scale_backward", dy.rows, dy.cols, dy, dx);
  map_backward<S>(dy, dy, dx, [f = constant<S>(factor)](S) { return f; });
}

template <class S>
Var<S> scale(Var<S> x, double factor) {
  require_operands("scale", x);
  auto y = output("scale", x.shape(), x);
  scale_forward<S>(x.rows("scale"), factor, y.rows());
  return y.saves().on_backward(
      [factor](const auto&, auto dy, auto dx) { scale_backward<S>(dy.rows(), factor, dx.rows()); });
}

#define HANDGRAD_INSTANTIATE(S)                                   \
  template void scale_forward<S>(Rows<const S>, double, Rows<S>); \
  template Var<S> scale<S>(Var<S>, double);
HANDGRAD_FOR_ALL_SCALARS(HANDGRAD_INSTANTIATE)
#undef HANDGRAD_INSTANTIATE
#define HANDGRAD_INSTANTIATE(S) template void scale_backward<S>(Rows<const S>, double, Rows<S>);
HANDGRAD_FOR_REAL_SCALARS(HANDGRAD_INSTANTIATE)
#undef HANDGRAD_INSTANTIATE

}  // namespace handgrad
