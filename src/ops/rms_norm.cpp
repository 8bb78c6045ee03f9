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
  return shape.rank() == 4 ? gemm::block_rows(shape[1]) * shape[2] : rows_in_block(shape);
}

}  // namespace

template <class S>
void rms_norm_forward(View<const S> x, std::span<const S> weight, double eps, std::span<S> inverse, View<S> y) {
  require_shape("rms_norm_forward", x.shape, x, y);
  require_size("rms_norm_forward", "weight", weight.size(), x.shape[-1]);
  require_size("rms_norm_forward", "inverse", inverse.size(), x.shape.size() / x.shape[-1]);
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
void rms_norm_backward(const RmsNormSaved<S>& saved, Index block, View<const S> dy, View<S> dx, std::span<S> dweight) {
  require_shape("rms_norm_backward", saved.x.shape, saved.x, dy);
  require_size("rms_norm_backward", "weight", saved.weight.size(), saved.x.shape[-1]);
  require_size("rms_norm_backward", "inverse", saved.inverse.size(), saved.x.shape.size() / saved.x.shape[-1]);
  require_at_least("rms_norm_backward", "block", block, 1);
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
  if (!dweight.empty()) {
    require_size("rms_norm_backward", "dweight", dweight.size(), cols);
    add_column_sums<S>(rows, cols, block, dweight.data(), [&dy, inv = inverse, xv = x](Index r) {
      return [in = row_start(xv, r), upstream = row_start(dy, r), scale = inv[r]](Index c) {
        return upstream[c] * (in[c] * scale);
      };
    });
  }
}

template <class S>
Var<S> rms_norm(Var<S> x, Var<S> weight, double eps) {
  require_operands("rms_norm", x, weight);
  require_last_axis("rms_norm", x.shape());
  if (last_stride(x.view()) != 1 && x.extent(-1) > 1) detail::refuse_rows(x.shape(), "rms_norm");
  if (weight.shape() != Shape{x.extent(-1)} || !weight.view().is_contiguous()) {
    throw ShapeError(fmt::format("rms_norm: weight must be contiguous and ({}), got {} for x {}", x.extent(-1),
                                 weight.shape().to_string(), x.shape().to_string()));
  }
  const Index block = head_rows_in_block(x.shape());
  auto y = output("rms_norm", x.shape(), x, weight);
  const std::span<S> inverse = y.scratch(x.size() / x.extent(-1));
  rms_norm_forward<S>(x.view(), weight.view().elements(), eps, inverse, y.view());
  return y.saves(x, weight, inverse).on_backward([block](const auto& saved, auto dy, auto dx, auto dweight) {
    const auto& [x_saved, w, inv] = saved;
    rms_norm_backward<S>({x_saved, w.elements(), inv}, block, dy, dx, dweight.elements());
  });
}

#define HANDGRAD_INSTANTIATE(S)                                                                        \
  template void rms_norm_forward<S>(View<const S>, std::span<const S>, double, std::span<S>, View<S>); \
  template Var<S> rms_norm<S>(Var<S>, Var<S>, double);
HANDGRAD_FOR_ALL_SCALARS(HANDGRAD_INSTANTIATE)
#undef HANDGRAD_INSTANTIATE
#define HANDGRAD_INSTANTIATE(S) \
  template void rms_norm_backward<S>(const RmsNormSaved<S>&, Index, View<const S>, View<S>, std::span<S>);
HANDGRAD_FOR_REAL_SCALARS(HANDGRAD_INSTANTIATE)
#undef HANDGRAD_INSTANTIATE

}  // namespace handgrad
