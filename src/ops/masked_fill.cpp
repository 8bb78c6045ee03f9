#include "handgrad/ops/masked_fill.h"

#include <fmt/format.h>

#include "core/instantiate.h"
#include "core/math.h"
#include "handgrad/autograd/output.h"
#include "handgrad/core/errors.h"
#include "ops/broadcast.h"
#include "ops/check.h"

namespace handgrad {

template <class S>
void masked_fill_forward(View<const S> x, MaskRef mask, double value, View<S> y) {
  require_shape("masked_fill_forward", x.shape, x, y);
  require_broadcast("masked_fill_forward", x.shape, mask);
  for_each_element(
      y, x, broadcast_view(mask, x.shape),
      [fill = constant<S>(value)](S& out, const S& in, const std::uint8_t& hidden) { out = hidden ? fill : in; });
}

// dx += 0 where mask is true, else dy
template <class S>
void masked_fill_backward(MaskRef mask, View<const S> dy, View<S> dx) {
  require_shape("masked_fill_backward", dx.shape, dy, dx);
  require_broadcast("masked_fill_backward", dx.shape, mask);
  for_each_element(dx, dy, broadcast_view(mask, dx.shape),
                   [](S& to, const S& upstream, const std::uint8_t& hidden) { to += hidden ? S(0) : upstream; });
}

template <class S>
Var<S> masked_fill(Var<S> x, MaskRef mask, double value) {
  require_operands("masked_fill", x);
  if (!mask) throw ShapeError("masked_fill: a mask is needed, got none");
  if (broadcast_shape(x.shape(), mask.shape, "masked_fill") != x.shape()) {
    throw ShapeError(fmt::format("masked_fill: the mask must broadcast to {}, got {}", x.shape().to_string(),
                                 mask.shape.to_string()));
  }
  auto y = output("masked_fill", x.shape(), x);
  y.may_hold_minus_infinity();
  masked_fill_forward<S>(x.view(), mask, value, y.view());
  mask.data = y.copy(memory_of(mask)).data();
  return y.saves(mask).on_backward([](const auto& saved, auto dy, auto dx) {
    const auto& [mask_saved] = saved;
    masked_fill_backward<S>(mask_saved, dy, dx);
  });
}

#define HANDGRAD_INSTANTIATE(S)                                                  \
  template void masked_fill_forward<S>(View<const S>, MaskRef, double, View<S>); \
  template Var<S> masked_fill<S>(Var<S>, MaskRef, double);
HANDGRAD_FOR_ALL_SCALARS(HANDGRAD_INSTANTIATE)
#undef HANDGRAD_INSTANTIATE
#define HANDGRAD_INSTANTIATE(S) template void masked_fill_backward<S>(MaskRef, View<const S>, View<S>);
HANDGRAD_FOR_REAL_SCALARS(HANDGRAD_INSTANTIATE)
#undef HANDGRAD_INSTANTIATE

}  // namespace handgrad
