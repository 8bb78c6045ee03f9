#include "handgrad/ops/swiglu.h"

#include <fmt/format.h>

#include "core/instantiate.h"
#include "core/math.h"
#include "handgrad/autograd/output.h"
#include "handgrad/core/errors.h"
#include "ops/check.h"
#include "ops/elementwise.h"

namespace handgrad {

template <class S>
void swiglu_forward(Rows<const S> gate, Rows<const S> up, Rows<S> y) {
  require_rows("swiglu_forward", y.rows, y.cols, gate, up, y);
  for_each_row(y.rows, y.cols, [&](Index r) {
    const S *g = gate.row(r), *u = up.row(r);
    S* out = y.row(r);
    for (Index c = 0; c < y.cols; ++c) out[c] = g[c] * sigmoid(g[c]) * u[c];
  });
}

// dg += dy u s (1 + g (1 - s)), du += dy g s
template <class S>
void swiglu_backward(Rows<const S> gate, Rows<const S> up, Rows<const S> dy, Rows<S> dgate, Rows<S> dup) {
  require_rows("swiglu_backward", dy.rows, dy.cols, gate, up, dy);
  if (dgate) require_rows("swiglu_backward", dy.rows, dy.cols, dgate);
  if (dup) require_rows("swiglu_backward", dy.rows, dy.cols, dup);
  for_each_row(dy.rows, dy.cols, [&](Index r) {
    const S *g = gate.row(r), *u = up.row(r), *upstream = dy.row(r);
    if (dgate) {
      S* to = dgate.row(r);
      for (Index c = 0; c < dy.cols; ++c) {
        const S s = sigmoid(g[c]);
        to[c] += upstream[c] * u[c] * s * (S(1) + g[c] * (S(1) - s));
      }
    }
    if (dup) {
      S* to = dup.row(r);
      for (Index c = 0; c < dy.cols; ++c) to[c] += upstream[c] * g[c] * sigmoid(g[c]);
    }
  });
}

template <class S>
Var<S> swiglu(Var<S> gate, Var<S> up) {
  require_operands("swiglu", gate, up);
  if (gate.shape() != up.shape()) {
    throw ShapeError(fmt::format("swiglu: gate and up must have the same shape, got {} and {}",
                                 gate.shape().to_string(), up.shape().to_string()));
  }
  auto y = output("swiglu", gate.shape(), gate, up);
  swiglu_forward<S>(gate.rows("swiglu"), up.rows("swiglu"), y.rows());
  return y.saves(gate, up).on_backward([](const auto& saved, auto dy, auto dgate, auto dup) {
    const auto& [g, u] = saved;
    swiglu_backward<S>(g.rows(), u.rows(), dy.rows(), dgate.rows(), dup.rows());
  });
}

#define HANDGRAD_INSTANTIATE(S)                                           \
  template void swiglu_forward<S>(Rows<const S>, Rows<const S>, Rows<S>); \
  template Var<S> swiglu<S>(Var<S>, Var<S>);
HANDGRAD_FOR_ALL_SCALARS(HANDGRAD_INSTANTIATE)
#undef HANDGRAD_INSTANTIATE
#define HANDGRAD_INSTANTIATE(S) \
  template void swiglu_backward<S>(Rows<const S>, Rows<const S>, Rows<const S>, Rows<S>, Rows<S>);
HANDGRAD_FOR_REAL_SCALARS(HANDGRAD_INSTANTIATE)
#undef HANDGRAD_INSTANTIATE

}  // namespace handgrad
