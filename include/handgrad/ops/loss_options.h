#pragma once

#include <span>

#include "handgrad/core/types.h"

namespace handgrad {

/// A running sum of losses over several micro-batches. Blocks of sequences are added in order, so that the sum does not
/// depend on the split of a batch.
struct LossSum {
  double sum = 0.0;  ///< In nats, over all targets that are not ignored.
  Index targets = 0;
  double mean() const { return targets > 0 ? sum / static_cast<double>(targets) : 0.0; }
};

/// Options of both cross-entropies.
struct LossOptions {
  TokenId ignore = -100;                        ///< Targets with this value contribute nothing to loss and gradient.
  double label_smoothing = 0.0;                 ///< eps: q = 1 - eps for the target, plus eps / V for every class.
  Index divisor = 0;                            ///< Divisor of the sum; 0: the number of targets that are not ignored.
  LossSum* report = nullptr;                    ///< The loss is added to it, if given.
  Index logits_budget_bytes = Index{64} << 20;  ///< linear_cross_entropy keeps logits up to this size for backward.
  Index slab_rows = 0;                          ///< linear_cross_entropy: rows of logits held at a time; 0: by shape.
};

/// Number of targets that are not `ignore`.
Index count_targets(std::span<const TokenId> targets, TokenId ignore);

}  // namespace handgrad
