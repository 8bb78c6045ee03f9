#include "handgrad/ops/softmax.h"

#include "core/instantiate.h"
#include "core/lanes.h"
#include "handgrad/autograd/output.h"
#include "ops/along_axis.h"
#include "ops/broadcast.h"
#include "ops/check.h"

namespace handgrad {

template <class S>
void softmax_forward(View<const S> x, View<S> y) {
  require_shape("softmax_forward", y.shape, x, y);
  for_each_line(
      y,
      [&](Index r, auto step) {
        const S* in = row_start(x, r);
        S* out = row_start(y, r);
        const Index n = last_extent(y), sx = step(last_stride(x)), sy = step(last_stride(y));
        const auto m = lane_max<S>(n, [=](Index i) { return in[i * sx]; });
        if (m == -std::numeric_limits<double>::infinity()) {
          for (Index i = 0; i < n; ++i) out[i * sy] = S(0);
          return;
        }
        for (Index i = 0; i < n; ++i) out[i * sy] = exp_of(in[i * sx] - m);
        const Accumulator<S> total = lane_sum<Accumulator<S>>(n, [=](Index i) { return Accumulator<S>(out[i * sy]); });
        const S share = from_accumulator<S>(1.0 / total);
        for (Index i = 0; i < n; ++i) out[i * sy] *= share;
      },
      x);
}

// dx_i += y_i (dy_i - sum_j dy_j y_j)
template <class S>
void softmax_backward(View<const S> y, View<const S> dy, View<S> dx) {
  require_shape("softmax_backward", dx.shape, y, dy, dx);
  for_each_line(
      dx,
      [&](Index r, auto step) {
        const S *out = row_start(y, r), *upstream = row_start(dy, r);
        S* to = row_start(dx, r);
        const Index n = last_extent(dx), sy = step(last_stride(y)), sd = step(last_stride(dy)),
                    sx = step(last_stride(dx));
        const auto inner = from_accumulator<S>(lane_sum<Accumulator<S>>(
            n, [=](Index i) { return Accumulator<S>(upstream[i * sd]) * Accumulator<S>(out[i * sy]); }));
        for (Index i = 0; i < n; ++i) to[i * sx] += out[i * sy] * (upstream[i * sd] - inner);
      },
      y, dy);
}

template <class S>
Var<S> softmax(Var<S> x, int axis) {
  require_operands("softmax", x);
  const int counted = require_axis("softmax", x.shape(), axis);
  auto y = output("softmax", x.shape(), x);
  softmax_forward<S>(along_last(x.view(), counted), along_last(y.view(), counted));
  return y.saves(y.var()).on_backward([counted](const auto& saved, auto dy, auto dx) {
    const auto& [y_saved] = saved;
    softmax_backward<S>(along_last(y_saved, counted), along_last(dy, counted), along_last(dx, counted));
  });
}

#define HANDGRAD_INSTANTIATE(S)                             \
  template void softmax_forward<S>(View<const S>, View<S>); \
  template Var<S> softmax<S>(Var<S>, int);
HANDGRAD_FOR_ALL_SCALARS(HANDGRAD_INSTANTIATE)
#undef HANDGRAD_INSTANTIATE
#define HANDGRAD_INSTANTIATE(S) template void softmax_backward<S>(View<const S>, View<const S>, View<S>);
HANDGRAD_FOR_REAL_SCALARS(HANDGRAD_INSTANTIATE)
#undef HANDGRAD_INSTANTIATE

}  // namespace handgrad
