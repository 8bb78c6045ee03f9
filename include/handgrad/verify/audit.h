#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "handgrad/config/config.h"
#include "handgrad/core/types.h"

namespace handgrad {

/// What is proven, and how thoroughly.
struct AuditOptions {
  Index entries = 16;    ///< Of each parameter tensor, by complex step; 0: all.
  Index directions = 8;  ///< Random directions over all parameters at once.
  std::uint64_t seed = 1;
  /// Told how far it is: what is done at present, and the share of it in [0, 1].
  std::function<void(const std::string& what, double share)> progress;
};

/// One thing that was checked.
struct AuditRow {
  std::string section;                            ///< "complex step", "float against double" ...
  std::string name;                               ///< A parameter tensor, an operation, a pair of paths.
  double error = 0.0;                             ///< The worst, in the section's measure.
  double limit = 0.0;                             ///< Largest error that passes.
  std::string where;                              ///< Of the worst: an index, a step, an input.
  bool passed() const { return error <= limit; }  // a NaN does not pass
};

struct AuditReport {
  std::vector<AuditRow> rows;
  bool passed() const;
};

/// Proves the gradients of one model on one batch: the loss of a (resolved) config's model, initialised with its seed,
/// on `batch` sequences of tokens and targets, with the dropout masks of the first step.
///
///   complex step          every parameter tensor: entries, against Im f(x + ih) / h; and random directions over all
///   finite differences    every parameter tensor along one random direction, the step swept over decades, the best
///   float against double  loss and every gradient tensor of the path that trains
///   paths                 explicit and tiled attention, cached and uncached logits, one and several threads
///   rules                 gradients are added to the existing ones; parameters and activations that are only read keep
///                         their bits: in double and in float
///
/// Errors are those of verify/gradient_check.h. Throws what the model throws.
AuditReport audit_model(const ModelConfig& config, std::span<const TokenId> tokens, std::span<const TokenId> targets,
                        Index batch, const AuditOptions& options = {});

/// Proves that the numeric core stays finite, and right, over the range of float: softmax and loss from the least to
/// the largest logit, norms of activations from 1e-30 to 1e30, attention of scores up to 3e38, rows that are all
/// masked, all equal, saturated or denormal; outputs and gradients, against a long double reference.
AuditReport audit_stability();

}  // namespace handgrad
