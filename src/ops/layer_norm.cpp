#include "handgrad/ops/layer_norm.h"

#include <fmt/format.h>

#include "core/instantiate.h"
#include "core/lanes.h"
#include "handgrad/autograd/output.h"
#include "handgrad/core/errors.h"
#include "ops/check.h"
#include "ops/elementwise.h"

namespace handgrad {
namespace {

template <class S, class T>
void check_row_arrays(const char* kernel, const Rows<const S>& x, std::span<const S> weight,
                      const LayerNormStatistics<T>& statistics) {
  require_size(kernel, "weight", weight.size(), x.cols);
  require_size(kernel, "means", statistics.mean.size(), x.rows);
  require_size(kernel, "inverse deviations", statistics.inverse.size(), x.rows);
}

}  // namespace

template <class S>
void layer_norm_forward(Rows<const S> x, std::span<const S> weight, std::span<const S> bias, double eps,
                        LayerNormStatistics<S> statistics, Rows<S> y) {
  require_rows("layer_norm_forward", x.rows, x.cols, x, y);
  check_row_arrays("layer_norm_forward", x, weight, statistics);
  if (!bias.empty()) require_size("layer_norm_forward", "bias", bias.size(), x.cols);
  require_at_least("layer_norm", "eps", eps, 0.0);
  using A = Accumulator<S>;
  for_each_row(x.rows, x.cols, [&](Index r) {
    const S* in = x.row(r);
    S* out = y.row(r);
    const double count = static_cast<double>(x.cols);
    const A mean = lane_sum<A>(x.cols, [=](Index c) { return A(in[c]); }) / count;
    const A variance = lane_sum<A>(x.cols, [=](Index c) { return (A(in[c]) - mean) * (A(in[c]) - mean); }) / count;
    const S m = from_accumulator<S>(mean), inverse = from_accumulator<S>(1.0 / sqrt_of(variance + eps));
    statistics.mean[r] = m;
    statistics.inverse[r] = inverse;
    if (!bias.empty()) {
      for (Index c = 0; c < x.cols; ++c) out[c] = (in[c] - m) * inverse * weight[c] + bias[c];
    } else {
      for (Index c = 0; c < x.cols; ++c) out[c] = (in[c] - m) * inverse * weight[c];
    }
  });
}

// g = dy w; dx += r (g - mean(g) - h mean(g h)); dw += sum of dy h; db += sum of dy
template <class S>
void layer_norm_backward(Rows<const S> x, std::span<const S> weight, LayerNormStatistics<const S> statistics,
                         Index block, Rows<const S> dy, NormGradients<S> gradients) {
  require_rows("layer_norm_backward", x.rows, x.cols, x, dy);
  check_row_arrays("layer_norm_backward", x, weight, statistics);
  require_at_least("layer_norm_backward", "block", block, 1);
  if (gradients.dx) require_rows("layer_norm_backward", x.rows, x.cols, gradients.dx);
  using A = Accumulator<S>;
  if (gradients.dx) {
    for_each_row(x.rows, x.cols, [&](Index r) {
      const S *in = x.row(r), *upstream = dy.row(r);
      S* to = gradients.dx.row(r);
      const S mean = statistics.mean[r], inverse = statistics.inverse[r];
      const double count = static_cast<double>(x.cols);
      const auto mean_g =
          from_accumulator<S>(lane_sum<A>(x.cols, [=](Index c) { return A(upstream[c] * weight[c]); }) / count);
      const auto mean_gh = from_accumulator<S>(
          lane_sum<A>(x.cols, [=](Index c) { return A(upstream[c] * weight[c]) * A((in[c] - mean) * inverse); }) /
          count);
      for (Index c = 0; c < x.cols; ++c) {
        to[c] += inverse * (upstream[c] * weight[c] - mean_g - (in[c] - mean) * inverse * mean_gh);
      }
    });
  }
  if (!gradients.dweight.empty()) {
    require_size("layer_norm_backward", "dweight", gradients.dweight.size(), x.cols);
    add_column_sums<S>(x.rows, x.cols, block, gradients.dweight.data(), [=](Index r) {
      return [in = x.row(r), upstream = dy.row(r), mean = statistics.mean[r],
              inverse = statistics.inverse[r]](Index c) { return upstream[c] * ((in[c] - mean) * inverse); };
    });
  }
  if (!gradients.dbias.empty()) {
    require_size("layer_norm_backward", "dbias", gradients.dbias.size(), x.cols);
    add_column_sums<S>(x.rows, x.cols, block, gradients.dbias.data(),
                       [=](Index r) { return [upstream = dy.row(r)](Index c) { return upstream[c]; }; });
  }
}

template <class S>
Var<S> layer_norm(Var<S> x, Var<S> weight, Var<S> bias, double eps) {
  require_operands("layer_norm", x, weight);
  require_last_axis("layer_norm", x.shape());
  const Shape width{x.extent(-1)};
  if (weight.shape() != width || (bias && bias.shape() != width) || !weight.view().is_contiguous() ||
      (bias && !bias.view().is_contiguous())) {
    throw ShapeError(fmt::format("layer_norm: weight and bias must be contiguous and {}, got {} and {} for x {}",
                                 width.to_string(), weight.shape().to_string(),
                                 bias ? bias.shape().to_string() : "none", x.shape().to_string()));
  }
  const Index block = rows_in_block(x.shape());
  auto y = output("layer_norm", x.shape(), x, weight, bias);
  const Index rows = y.rows().rows;
  const LayerNormStatistics<S> statistics{y.scratch(rows), y.scratch(rows)};
  layer_norm_forward<S>(x.rows("layer_norm"), weight.view().elements(),
                        bias ? bias.view().elements() : std::span<const S>{}, eps, statistics, y.rows());
  return y.saves(x, weight, statistics)
      .on_backward([block](const auto& saved, auto dy, auto dx, auto dweight, auto dbias) {
        const auto& [x_saved, w, stats] = saved;
        layer_norm_backward<S>(x_saved.rows(), w.elements(), stats, block, dy.rows(),
                               {dx.rows(), dweight.elements(), dbias.elements()});
      });
}

#define HANDGRAD_INSTANTIATE(S)                                                                      \
  template void layer_norm_forward<S>(Rows<const S>, std::span<const S>, std::span<const S>, double, \
                                      LayerNormStatistics<S>, Rows<S>);                              \
  template Var<S> layer_norm<S>(Var<S>, Var<S>, Var<S>, double);
HANDGRAD_FOR_ALL_SCALARS(HANDGRAD_INSTANTIATE)
#undef HANDGRAD_INSTANTIATE
#define HANDGRAD_INSTANTIATE(S)                                                                                \
  template void layer_norm_backward<S>(Rows<const S>, std::span<const S>, LayerNormStatistics<const S>, Index, \
                                       Rows<const S>, NormGradients<S>);
HANDGRAD_FOR_REAL_SCALARS(HANDGRAD_INSTANTIATE)
#undef HANDGRAD_INSTANTIATE

}  // namespace handgrad
