#include "handgrad/ops/mul.h"

#include "core/instantiate.h"
#include "handgrad/autograd/output.h"
#include "ops/broadcast.h"
#include "ops/check.h"

namespace handgrad {

template <class S>
void mul_forward(View<const S> a, View<const S> b, View<S> y) {
  require_shape("mul_forward", y.shape, y);
  require_broadcast("mul_forward", y.shape, a);
  require_broadcast("mul_forward", y.shape, b);
  for_each_element(y, broadcast_view(a, y.shape), broadcast_view(b, y.shape),
                   [](S& out, const S& left, const S& right) { out = left * right; });
}

// da += dy b, db += dy a, each summed over the axes along which it was repeated
template <class S>
void mul_backward(View<const S> a, View<const S> b, View<const S> dy, View<S> da, View<S> db) {
  require_shape("mul_backward", dy.shape, dy);
  require_broadcast("mul_backward", dy.shape, a);
  require_broadcast("mul_backward", dy.shape, b);
  if (da) require_shape("mul_backward", a.shape, da);
  if (db) require_shape("mul_backward", b.shape, db);
  const Shape& shape = dy.shape;
  if (da) {
    add_reduced<S>(broadcast_view(da, shape), dy, broadcast_view(b, shape),
                   [](S upstream, S other) { return upstream * other; });
  }
  if (db) {
    add_reduced<S>(broadcast_view(db, shape), dy, broadcast_view(a, shape),
                   [](S upstream, S other) { return upstream * other; });
  }
}

template <class S>
Var<S> mul(Var<S> a, Var<S> b) {
  require_operands("mul", a, b);
  auto y = output("mul", broadcast_shape(a.shape(), b.shape(), "mul"), a, b);
  mul_forward<S>(a.view(), b.view(), y.view());
  return y.saves(a, b).on_backward([](const auto& saved, auto dy, auto da, auto db) {
    const auto& [a_saved, b_saved] = saved;
    mul_backward<S>(a_saved, b_saved, dy, da, db);
  });
}

#define HANDGRAD_INSTANTIATE(S)                                        \
  template void mul_forward<S>(View<const S>, View<const S>, View<S>); \
  template Var<S> mul<S>(Var<S>, Var<S>);
HANDGRAD_FOR_ALL_SCALARS(HANDGRAD_INSTANTIATE)
#undef HANDGRAD_INSTANTIATE
#define HANDGRAD_INSTANTIATE(S) \
  template void mul_backward<S>(View<const S>, View<const S>, View<const S>, View<S>, View<S>);
HANDGRAD_FOR_REAL_SCALARS(HANDGRAD_INSTANTIATE)
#undef HANDGRAD_INSTANTIATE

}  // namespace handgrad
