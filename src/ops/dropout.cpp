#include "handgrad/ops/dropout.h"

#include <fmt/format.h>

#include "core/instantiate.h"
#include "core/math.h"
#include "handgrad/autograd/output.h"
#include "handgrad/core/errors.h"
#include "ops/check.h"
#include "ops/elementwise.h"

namespace handgrad {

template <class S>
void dropout_forward(Rows<const S> x, const DropoutMask& mask, Rows<S> y) {
  require_rows("dropout_forward", x.rows, x.cols, x, y);
  const S scale = constant<S>(mask.keep_scale());
  for_each_row(x.rows, x.cols, [&](Index r) {
    const S* in = x.row(r);
    S* out = y.row(r);
    mask.row(r, x.cols, 0, x.cols, [&](Index c, bool kept) { out[c] = kept ? scale * in[c] : S(0); });
  });
}

// dx += m dy
template <class S>
void dropout_backward(const DropoutMask& mask, Rows<const S> dy, Rows<S> dx) {
  require_rows("dropout_backward", dy.rows, dy.cols, dy, dx);
  const S scale = constant<S>(mask.keep_scale());
  for_each_row(dy.rows, dy.cols, [&](Index r) {
    const S* upstream = dy.row(r);
    S* to = dx.row(r);
    mask.row(r, dy.cols, 0, dy.cols, [&](Index c, bool kept) { to[c] += kept ? scale * upstream[c] : S(0); });
  });
}

template <class S>
Var<S> dropout(Var<S> x, DropoutMask mask) {
  require_operands("dropout", x);
  if (!(mask.probability >= 0.0 && mask.probability < 1.0)) {
    throw RangeError(fmt::format("dropout: the probability must be in [0, 1), got {}", mask.probability));
  }
  if (!mask.active()) return x;
  auto y = output("dropout", x.shape(), x);
  dropout_forward<S>(x.rows("dropout"), mask, y.rows());
  return y.saves(mask).on_backward([](const auto& saved, auto dy, auto dx) {
    const auto& [mask_saved] = saved;
    dropout_backward<S>(mask_saved, dy.rows(), dx.rows());
  });
}

#define HANDGRAD_INSTANTIATE(S)                                                 \
  template void dropout_forward<S>(Rows<const S>, const DropoutMask&, Rows<S>); \
  template Var<S> dropout<S>(Var<S>, DropoutMask);
HANDGRAD_FOR_ALL_SCALARS(HANDGRAD_INSTANTIATE)
#undef HANDGRAD_INSTANTIATE
#define HANDGRAD_INSTANTIATE(S) template void dropout_backward<S>(const DropoutMask&, Rows<const S>, Rows<S>);
HANDGRAD_FOR_REAL_SCALARS(HANDGRAD_INSTANTIATE)
#undef HANDGRAD_INSTANTIATE

}  // namespace handgrad
