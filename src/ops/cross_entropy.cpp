#include "handgrad/ops/cross_entropy.h"

#include "core/instantiate.h"
#include "handgrad/autograd/output.h"
#include "ops/loss_rows.h"

namespace handgrad {

template <class S>
void cross_entropy_forward(Rows<const S> logits, std::span<const TokenId> targets, const LossOptions& options,
                           SoftmaxStatistics<S> statistics, std::span<S> losses) {
  require_rows("cross_entropy_forward", logits.rows, logits.cols, logits);
  check_targets("cross_entropy_forward", targets, logits.rows, logits.cols, options);
  check_statistics("cross_entropy_forward", statistics, logits.rows);
  require_size("cross_entropy_forward", "losses", losses.size(), logits.rows);
  for_each_row(logits.rows, logits.cols, [&](Index r) {
    const TokenId target = targets[r];
    losses[r] = target == options.ignore
                    ? S(0)
                    : row_loss<S>(logits.row(r), logits.cols, target, options.label_smoothing, statistics, r);
  });
}

// dx += dy (p - q) / N
template <class S>
void cross_entropy_backward(Rows<const S> logits, std::span<const TokenId> targets, const LossOptions& options,
                            SoftmaxStatistics<const S> statistics, S factor, Rows<S> dlogits) {
  require_rows("cross_entropy_backward", logits.rows, logits.cols, logits, dlogits);
  check_targets("cross_entropy_backward", targets, logits.rows, logits.cols, options);
  check_statistics("cross_entropy_backward", statistics, logits.rows);
  for_each_row(logits.rows, logits.cols, [&](Index r) {
    const TokenId target = targets[r];
    if (target == options.ignore) return;
    S* to = dlogits.row(r);
    row_gradient<S>(logits.row(r), logits.cols, target, options.label_smoothing, statistics, r,
                    [=](Index i, S difference) { to[i] += factor * difference; });
  });
}

template <class S>
Var<S> cross_entropy(Var<S> logits, std::span<const TokenId> targets, const LossOptions& options) {
  require_operands("cross_entropy", logits);
  const Rows<const S> rows = logits.rows("cross_entropy");
  check_targets("cross_entropy", targets, rows.rows, rows.cols, options);
  const Index block = rows_in_block(logits.shape());
  const Index divisor = loss_divisor(targets, options);
  auto y = output("cross_entropy", Shape{}, logits);
  const SoftmaxStatistics<S> statistics{y.scratch(rows.rows), y.scratch(rows.rows)};
  const std::span<S> losses = y.scratch(rows.rows);
  cross_entropy_forward<S>(rows, targets, options, statistics, losses);
  const auto total = add_losses<S>(losses, targets, block, options);
  *y.data() = divisor > 0 ? from_accumulator<S>(total / static_cast<double>(divisor)) : S(0);
  return y.saves(logits, statistics, y.copy(targets), options)
      .on_backward([divisor](const auto& saved, auto dy, auto dlogits) {
        const auto& [x, stats, targets_saved, options_saved] = saved;
        if (divisor == 0) return;
        const S factor = *dy.data / static_cast<S>(divisor);
        cross_entropy_backward<S>(x.rows(), targets_saved, options_saved, stats, factor, dlogits.rows());
      });
}

#define HANDGRAD_INSTANTIATE(S)                                                                       \
  template void cross_entropy_forward<S>(Rows<const S>, std::span<const TokenId>, const LossOptions&, \
                                         SoftmaxStatistics<S>, std::span<S>);                         \
  template Var<S> cross_entropy<S>(Var<S>, std::span<const TokenId>, const LossOptions&);
HANDGRAD_FOR_ALL_SCALARS(HANDGRAD_INSTANTIATE)
#undef HANDGRAD_INSTANTIATE
#define HANDGRAD_INSTANTIATE(S)                                                                        \
  template void cross_entropy_backward<S>(Rows<const S>, std::span<const TokenId>, const LossOptions&, \
                                          SoftmaxStatistics<const S>, S, Rows<S>);
HANDGRAD_FOR_REAL_SCALARS(HANDGRAD_INSTANTIATE)
#undef HANDGRAD_INSTANTIATE

}  // namespace handgrad
