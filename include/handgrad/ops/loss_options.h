#pragma once

#include <span>

#include "handgrad/core/types.h"

namespace handgrad {

/// A running sum of losses over several micro-batches: blocks of sequences are added in order, so that it does not
/// depend on how a batch was split.
struct LossSum {
  double sum = 0.0;  ///< In nats, over all targets that are not ignored.
  Index targets = 0;
  double mean() const { return targets > 0 ? sum / static_cast<double>(targets) : 0.0; }
};

/// What both cross-entropies take.
struct LossOptions {
  TokenId ignore = -100;         ///< Targets of this value have no part in loss and gradient.
  double label_smoothing = 0.0;  ///< eps: the target gets 1 - eps, and eps is spread over all V classes alike.
  Index divisor = 0;             ///< What the sum is divided by; 0: the number of targets that are not ignored.
  LossSum* report = nullptr;     ///< Added to, if given.
  Index logits_budget_bytes = Index{64} << 20;  ///< linear_cross_entropy keeps logits up to this size for backward.
  Index slab_rows = 0;                          ///< linear_cross_entropy: rows of logits held at a time; 0: by shape.
};

/// Number of targets that are not `ignore`.
Index count_targets(std::span<const TokenId> targets, TokenId ignore);

}  // namespace handgrad
