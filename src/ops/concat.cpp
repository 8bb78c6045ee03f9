#include "handgrad/ops/concat.h"

#include <fmt/format.h>

#include "core/instantiate.h"
#include "handgrad/autograd/output.h"
#include "handgrad/core/errors.h"
#include "handgrad/ops/contiguous.h"
#include "ops/broadcast.h"
#include "ops/check.h"

namespace handgrad {
namespace {

template <class T>
ConcatParts<T> parts_of(View<T> y, int axis, Index first_extent) {
  const Index step = y.strides[axis];
  return {{y.data, y.shape.with(axis, first_extent), y.strides},
          {y.data + first_extent * step, y.shape.with(axis, y.shape[axis] - first_extent), y.strides}};
}

Shape joined_shape(const Shape& a, const Shape& b, int axis) {
  if (a.rank() == b.rank()) {
    const Shape joined = a.with(axis, a[axis] + b[axis]);
    if (b.with(axis, joined[axis]) == joined) return joined;
  }
  throw ShapeError(
      fmt::format("concat: shapes must be equal but for axis {}, got {} and {}", axis, a.to_string(), b.to_string()));
}

}  // namespace

template <class S>
void concat_forward(View<const S> a, View<const S> b, ConcatParts<S> y) {
  require_shape("concat_forward", y.first.shape, a, y.first);
  require_shape("concat_forward", y.second.shape, b, y.second);
  contiguous_forward<S>(a, y.first);
  contiguous_forward<S>(b, y.second);
}

// da += the first part of dy, db += the rest
template <class S>
void concat_backward(ConcatParts<const S> dy, View<S> da, View<S> db) {
  require_shape("concat_backward", dy.first.shape, dy.first);
  require_shape("concat_backward", dy.second.shape, dy.second);
  if (da) require_shape("concat_backward", dy.first.shape, da);
  if (db) require_shape("concat_backward", dy.second.shape, db);
  if (da) contiguous_backward<S>(dy.first, da);
  if (db) contiguous_backward<S>(dy.second, db);
}

template <class S>
Var<S> concat(Var<S> a, Var<S> b, int axis) {
  require_operands("concat", a, b);
  const int counted = require_axis("concat", a.shape(), axis);
  const Index first_extent = a.extent(counted);
  auto y = output("concat", joined_shape(a.shape(), b.shape(), axis), a, b);
  concat_forward<S>(a.view(), b.view(), parts_of(y.view(), counted, first_extent));
  return y.saves().on_backward([counted, first_extent](const auto&, auto dy, auto da, auto db) {
    concat_backward<S>(parts_of(dy, counted, first_extent), da, db);
  });
}

#define HANDGRAD_INSTANTIATE(S)                                                  \
  template void concat_forward<S>(View<const S>, View<const S>, ConcatParts<S>); \
  template Var<S> concat<S>(Var<S>, Var<S>, int);
HANDGRAD_FOR_ALL_SCALARS(HANDGRAD_INSTANTIATE)
#undef HANDGRAD_INSTANTIATE
#define HANDGRAD_INSTANTIATE(S) template void concat_backward<S>(ConcatParts<const S>, View<S>, View<S>);
HANDGRAD_FOR_REAL_SCALARS(HANDGRAD_INSTANTIATE)
#undef HANDGRAD_INSTANTIATE

}  // namespace handgrad
