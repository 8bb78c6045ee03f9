#pragma once

#include <fmt/format.h>

#include <span>

#include "core/lanes.h"
#include "handgrad/core/errors.h"
#include "handgrad/ops/loss_options.h"
#include "ops/elementwise.h"

// The rows of a cross-entropy, shared by its two forms.

namespace handgrad {

inline void check_targets(std::span<const TokenId> targets, Index rows, Index classes, const LossOptions& options) {
  const TokenId ignore = options.ignore;
  if (!(options.label_smoothing >= 0.0 && options.label_smoothing <= 1.0)) {
    throw RangeError(fmt::format("cross_entropy: label smoothing lies in [0, 1], got {}", options.label_smoothing));
  }
  if (options.divisor < 0 || options.slab_rows < 0 || options.logits_budget_bytes < 0) {
    throw RangeError(
        fmt::format("cross_entropy: divisor, slab rows and logits budget must be 0 or more, got {}, {}, {}",
                    options.divisor, options.slab_rows, options.logits_budget_bytes));
  }
  if (static_cast<Index>(targets.size()) != rows) {
    throw ShapeError(
        fmt::format("cross_entropy: one target a row is needed, got {} for {} rows", targets.size(), rows));
  }
  for (std::size_t r = 0; r < targets.size(); ++r) {
    if (targets[r] != ignore && (targets[r] < 0 || targets[r] >= classes)) {
      throw RangeError(fmt::format("cross_entropy: target {} in row {} is outside [0, {})", targets[r], r, classes));
    }
  }
}

/// Loss of one row; writes its maximum and log-sum.
template <class S>
S row_loss(const S* x, Index classes, TokenId target, double smoothing, S* statistics) {
  using A = Accumulator<S>;
  const auto m = lane_max<S>(classes, [=](Index i) { return x[i]; });
  const A log_sum = log_of(lane_sum<A>(classes, [=](Index i) { return A(exp_of(x[i] - m)); }));
  statistics[0] = S(m);
  statistics[1] = from_accumulator<S>(log_sum);
  A loss = log_sum - A(x[target] - m);
  if (smoothing > 0.0) {
    const A spread =
        log_sum - lane_sum<A>(classes, [=](Index i) { return A(x[i] - m); }) / static_cast<double>(classes);
    loss = (1.0 - smoothing) * loss + smoothing * spread;
  }
  return from_accumulator<S>(loss);
}

/// put(i, p_i - q_i) for every class of one row; put may write over x.
template <class S, class Put>
void row_gradient(const S* x, Index classes, TokenId target, double smoothing, const S* statistics, Put put) {
  const S m = statistics[0], log_sum = statistics[1];
  const S on = constant<S>(1.0 - smoothing), off = constant<S>(smoothing / static_cast<double>(classes));
  for (Index i = 0; i < classes; ++i) put(i, exp_of((x[i] - m) - log_sum) - off - (i == target ? on : S(0)));
}

/// Adds the rows' losses to `total`: a sum a block of sequences, blocks in order; returns the sum of these rows alone.
template <class S>
Accumulator<S> add_losses(const S* losses, std::span<const TokenId> targets, Index block, const LossOptions& options) {
  const Index rows = static_cast<Index>(targets.size());
  Accumulator<S> total{};
  for (Index first = 0; first < rows; first += block) {
    Accumulator<S> sum{};
    for (Index r = first; r < std::min(first + block, rows); ++r) sum += losses[r];
    total += sum;
    if (options.report) options.report->sum += real_part(sum);
  }
  if (options.report) options.report->targets += count_targets(targets, options.ignore);
  return total;
}

/// What the sum of losses is divided by; 0 if there is nothing to divide.
inline Index loss_divisor(std::span<const TokenId> targets, const LossOptions& options) {
  return options.divisor > 0 ? options.divisor : count_targets(targets, options.ignore);
}

}  // namespace handgrad
