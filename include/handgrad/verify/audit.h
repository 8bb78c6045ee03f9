#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "handgrad/config/config.h"
#include "handgrad/core/types.h"

namespace handgrad {

/// The extent of an audit.
struct AuditOptions {
  Index entries = 16;    ///< Entries of each parameter tensor for the complex step; 0: all.
  Index directions = 8;  ///< Random directions over all parameters at once.
  std::uint64_t seed = 1;
  /// Called with the current section and its completed share, in [0, 1].
  std::function<void(const std::string& what, double share)> progress;
};

/// The result of one check.
struct AuditRow {
  std::string section;                            ///< "complex step", "float against double" ...
  std::string name;                               ///< A parameter tensor, an operation, a pair of paths.
  double error = 0.0;                             ///< The worst error, in the measure of the section.
  double limit = 0.0;                             ///< Largest error that passes.
  std::string where;                              ///< The place of the worst error: an index, a step, an input.
  bool passed() const { return error <= limit; }  // a NaN does not pass
};

struct AuditReport {
  std::vector<AuditRow> rows;
  bool passed() const;
};

/// Proves the gradients of the loss of one model on one batch. The model has the resolved config `config`, initial
/// weights of its seed, and the dropout masks of the first step; the batch has `batch` sequences of tokens and targets.
///
///   complex step          entries of every parameter tensor, against Im f(x + ih) / h; random directions over all
///   finite differences    every parameter tensor along one random direction, with the best of several steps
///   float against double  loss and every gradient tensor of the path that trains
///   paths                 explicit and tiled attention, cached and uncached logits, one and several threads
///   rules                 gradients are added to the existing ones; operands keep their bits; in double and in float
///
/// The measures are those of verify/gradient_check.h. Throws the errors of the model.
AuditReport audit_model(const ModelConfig& config, std::span<const TokenId> tokens, std::span<const TokenId> targets,
                        Index batch, const AuditOptions& options = {});

/// Proves that outputs and gradients are finite and accurate over the range of float, against a long double reference:
/// softmax and loss from the smallest to the largest logit, norms of activations from 1e-30 to 1e30, attention with
/// scores up to 3e38, rows that are all masked, all equal, saturated or denormal.
AuditReport audit_stability();

}  // namespace handgrad
