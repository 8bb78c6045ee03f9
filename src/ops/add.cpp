#include "handgrad/ops/add.h"

#include "core/instantiate.h"
#include "handgrad/autograd/output.h"
#include "ops/broadcast.h"
#include "ops/check.h"

namespace handgrad {

template <class S>
void add_forward(View<const S> a, View<const S> b, View<S> y) {
  require_shape("add_forward", y.shape, y);
  require_broadcast("add_forward", y.shape, a);
  require_broadcast("add_forward", y.shape, b);
  for_each_element(y, broadcast_view(a, y.shape), broadcast_view(b, y.shape),
                   [](S& out, const S& left, const S& right) { out = left + right; });
}

// da += dy, db += dy, each summed over the axes along which it was repeated
template <class S>
void add_backward(View<const S> dy, View<S> da, View<S> db) {
  require_shape("add_backward", dy.shape, dy);
  if (da) require_broadcast("add_backward", dy.shape, da);
  if (db) require_broadcast("add_backward", dy.shape, db);
  const Shape& shape = dy.shape;
  const auto upstream_only = [](S upstream, S) { return upstream; };
  if (da) add_reduced<S>(broadcast_view(da, shape), dy, dy, upstream_only);
  if (db) add_reduced<S>(broadcast_view(db, shape), dy, dy, upstream_only);
}

template <class S>
Var<S> add(Var<S> a, Var<S> b) {
  require_operands("add", a, b);
  auto y = output("add", broadcast_shape(a.shape(), b.shape(), "add"), a, b);
  add_forward<S>(a.view(), b.view(), y.view());
  return y.saves().on_backward([](const auto&, auto dy, auto da, auto db) { add_backward<S>(dy, da, db); });
}

#define HANDGRAD_INSTANTIATE(S)                                        \
  template void add_forward<S>(View<const S>, View<const S>, View<S>); \
  template Var<S> add<S>(Var<S>, Var<S>);
HANDGRAD_FOR_ALL_SCALARS(HANDGRAD_INSTANTIATE)
#undef HANDGRAD_INSTANTIATE
#define HANDGRAD_INSTANTIATE(S) template void add_backward<S>(View<const S>, View<S>, View<S>);
HANDGRAD_FOR_REAL_SCALARS(HANDGRAD_INSTANTIATE)
#undef HANDGRAD_INSTANTIATE

}  // namespace handgrad
