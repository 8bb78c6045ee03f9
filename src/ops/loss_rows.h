#pragma once

#include <fmt/format.h>

#include <span>

#include "core/lanes.h"
#include "handgrad/core/errors.h"
#include "handgrad/ops/loss_options.h"
#include "handgrad/ops/row_statistics.h"
#include "ops/check.h"
#include "ops/elementwise.h"

// The loss and the gradient of one row, for both cross-entropies.

namespace handgrad {

/// Throws ShapeError or RangeError, which name `operation`.
inline void check_targets(const char* operation, std::span<const TokenId> targets, Index rows, Index classes,
                          const LossOptions& options) {
  if (!(options.label_smoothing >= 0.0 && options.label_smoothing <= 1.0)) {
    throw RangeError(
        fmt::format("{}: label smoothing must be from 0 to 1, got {}", operation, options.label_smoothing));
  }
  const auto not_negative = [&](const char* option, Index value) {
    if (value < 0) throw RangeError(fmt::format("{}: {} must be 0 or more, got {}", operation, option, value));
  };
  not_negative("divisor", options.divisor);
  not_negative("slab_rows", options.slab_rows);
  not_negative("logits_budget_bytes", options.logits_budget_bytes);
  if (std::ssize(targets) != rows) {
    throw ShapeError(
        fmt::format("{}: one target per row is needed, got {} for {} rows", operation, targets.size(), rows));
  }
  for (std::size_t r = 0; r < targets.size(); ++r) {
    if (targets[r] != options.ignore && (targets[r] < 0 || targets[r] >= classes)) {
      throw RangeError(fmt::format("{}: target {} in row {} is outside [0, {})", operation, targets[r], r, classes));
    }
  }
}

/// Throws ShapeError unless there is one of each statistic per row.
template <class S>
void check_statistics(const char* kernel, const SoftmaxStatistics<S>& statistics, Index rows) {
  require_size(kernel, "row maxima", statistics.row_max.size(), rows);
  require_size(kernel, "log-sums", statistics.log_sum.size(), rows);
}

/// The loss of row r with logits x; writes the statistics of the row.
template <class S>
S row_loss(const S* x, Index classes, TokenId target, double smoothing, const SoftmaxStatistics<S>& statistics,
           Index r) {
  using A = Accumulator<S>;
  const auto m = lane_max<S>(classes, [=](Index i) { return x[i]; });
  const A log_sum = log_of(lane_sum<A>(classes, [=](Index i) { return A(exp_of(x[i] - m)); }));
  statistics.row_max[r] = S(m);
  statistics.log_sum[r] = from_accumulator<S>(log_sum);
  A loss = log_sum - A(x[target] - m);
  if (smoothing > 0.0) {
    const A spread =
        log_sum - lane_sum<A>(classes, [=](Index i) { return A(x[i] - m); }) / static_cast<double>(classes);
    loss = (1.0 - smoothing) * loss + smoothing * spread;
  }
  return from_accumulator<S>(loss);
}

/// Calls put(i, p_i - q_i) for every class i of row r with logits x; put may overwrite x[i].
template <class S, class Put>
void row_gradient(const S* x, Index classes, TokenId target, double smoothing,
                  const SoftmaxStatistics<const S>& statistics, Index r, Put put) {
  const S m = statistics.row_max[r], log_sum = statistics.log_sum[r];
  const S on = constant<S>(1.0 - smoothing), off = constant<S>(smoothing / static_cast<double>(classes));
  for (Index i = 0; i < classes; ++i) put(i, exp_of((x[i] - m) - log_sum) - off - (i == target ? on : S(0)));
}

/// The sum of the losses, by block of sequences, in order. It is also added to options.report.
template <class S>
Accumulator<S> add_losses(std::span<const S> losses, std::span<const TokenId> targets, Index block,
                          const LossOptions& options) {
  const Index rows = std::ssize(targets);
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

/// The divisor of the sum of losses; 0 if every target is ignored.
inline Index loss_divisor(std::span<const TokenId> targets, const LossOptions& options) {
  return options.divisor > 0 ? options.divisor : count_targets(targets, options.ignore);
}

}  // namespace handgrad
