#include "handgrad/ops/rms_norm.h"

#include <fmt/format.h>

#include "core/instantiate.h"
#include "core/lanes.h"
#include "handgrad/autograd/output.h"
#include "handgrad/core/errors.h"
#include "ops/broadcast.h"
#include "ops/check.h"

namespace handgrad {
namespace {

// Rows of heads in one block: blocks are counted in sequences.
Index head_rows_in_block(const Shape& shape) {
  return shape.rank() == 4 ? block_rows(shape[1]) * shape[2] : rows_in_block(shape);
}

}  // namespace

template <class S>
void rms_norm_forward(View<const S> x, const S* weight, double eps, S* inverse, View<S> y) {
  require_shape("rms_norm_forward", x.shape, x, y);
  require_memory("rms_norm_forward", {weight, inverse});
  require_at_least("rms_norm", "eps", eps, 0.0);
  using A = Accumulator<S>;
  const Index cols = x.shape[-1];
  for_each_row(x.shape.size() / cols, cols, [&](Index r) {
    const S* in = row_start(x, r);
    S* out = row_start(y, r);
    const A squares = lane_sum<A>(cols, [=](Index c) { return A(in[c]) * A(in[c]); });
    inverse[r] = from_accumulator<S>(1.0 / sqrt_of(squares / static_cast<double>(cols) + eps));
    for (Index c = 0; c < cols; ++c) out[c] = in[c] * inverse[r] * weight[c];
  });
}

// g = dy w; dx += r (g - h mean(g h)); dw += sum of dy h
template <class S>
void rms_norm_backward(const RmsNormSaved<S>& saved, Index block, View<const S> dy, View<S> dx, S* dweight) {
  require_shape("rms_norm_backward", saved.x.shape, saved.x, dy);
  require_memory("rms_norm_backward", {saved.weight, saved.inverse});
  require_at_least("rms_norm_backward", "block", static_cast<double>(block), 1.0);
  if (dx) require_shape("rms_norm_backward", saved.x.shape, dx);
  using A = Accumulator<S>;
  const auto [x, weight, inverse] = saved;
  const Index cols = x.shape[-1], rows = x.shape.size() / cols;
  if (dx) {
    for_each_row(rows, cols, [&, w = weight, inv = inverse, xv = x](Index r) {
      const S *in = row_start(xv, r), *upstream = row_start(dy, r);
      S* to = row_start(dx, r);
      const S scale = inv[r];
      const auto mean_gh =
          from_accumulator<S>(lane_sum<A>(cols, [=](Index c) { return A(upstream[c] * w[c]) * A(in[c] * scale); }) /
                              static_cast<double>(cols));
      for (Index c = 0; c < cols; ++c) to[c] += scale * (upstream[c] * w[c] - in[c] * scale * mean_gh);
    });
  }
  if (dweight) {
    add_column_sums<S>(rows, cols, block, dweight, [&dy, inv = inverse, xv = x](Index r) {
      return [in = row_start(xv, r), upstream = row_start(dy, r), scale = inv[r]](Index c) {
        return upstream[c] * (in[c] * scale);
      };
    });
  }
}

template <class S>
Var<S> rms_norm(Var<S> x, Var<S> weight, double eps) {
  if (weight.shape() != Shape{x.extent(-1)} || !weight.view().is_contiguous()) {
    throw ShapeError(fmt::format("rms_norm: weight is dense and ({}), got {} for x {}", x.extent(-1),
                                 weight.shape().to_string(), x.shape().to_string()));
  }
  const Index block = head_rows_in_block(x.shape());
  auto y = output("rms_norm", x.shape(), x, weight);
  const Scratch<S> inverse = y.scratch(x.size() / x.extent(-1));
  rms_norm_forward<S>(x.view(), weight.view().data, eps, inverse.data, y.view());
  return y.saves(x, weight, inverse).on_backward([block](const auto& saved, auto dy, auto dx, auto dweight) {
    const auto& [x_saved, w, inv] = saved;
    rms_norm_backward<S>({x_saved, w.data, inv.data}, block, dy, dx, dweight.data);
  });
}

#define HANDGRAD_INSTANTIATE(S)                                                    \
  template void rms_norm_forward<S>(View<const S>, const S*, double, S*, View<S>); \
  template Var<S> rms_norm<S>(Var<S>, Var<S>, double);
HANDGRAD_FOR_ALL_SCALARS(HANDGRAD_INSTANTIATE)
#undef HANDGRAD_INSTANTIATE
#define HANDGRAD_INSTANTIATE(S) \
  template void rms_norm_backward<S>(const RmsNormSaved<S>&, Index, View<const S>, View<S>, S*);
HANDGRAD_FOR_REAL_SCALARS(HANDGRAD_INSTANTIATE)
#undef HANDGRAD_INSTANTIATE

}  // namespace handgrad
