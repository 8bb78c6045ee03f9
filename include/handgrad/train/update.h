#pragma once

#include <functional>
#include <memory>
#include <span>

#include "handgrad/nn/causal_lm.h"
#include "handgrad/optim/optimizer.h"

namespace handgrad {

/// Sequences whose gradient is computed in one pass.
struct MicroBatch {
  std::span<const TokenId> inputs, targets;  ///< (B, T) each, row by row.
  std::uint64_t first_sample = 0;  ///< Number of the first sequence, counted over the whole training: seeds dropout.
};

/// One update of a model's parameters: the gradients of all micro-batches, their norm, clipping, the optimiser's step.
///
///   Update<float> update(config, model);
///   const LossSum loss = update.make_gradients(model, [&](Index i) { return micro_batches[i]; });
///   update.apply(model, learning_rate(config, step), update.norm(model));
///
/// The gradient is that of the mean loss over all targets of the update. Every call takes the model that the
/// constructor was given.
template <class S>
class Update {
 public:
  /// For a resolved config; makes the model's gradients and the optimiser. Throws ResourceError.
  Update(const Config& config, CausalLm<S>& model);

  /// Sets the gradients to those of micro-batches 0 to train.accumulation - 1, which `micro_batch` returns; their spans
  /// must stay valid until it is called again. `stop`, if given, is called after each one; true skips the others.
  /// Returns the losses before the update. Throws what CausalLm::loss() throws.
  LossSum make_gradients(CausalLm<S>& model, const std::function<MicroBatch(Index)>& micro_batch,
                         const std::function<bool()>& stop = {});
  /// Global L2 norm of the gradients, before clipping.
  double norm(const CausalLm<S>& model) const { return gradient_norm(model.store()); }
  /// Applies the gradients, scaled down where `norm` exceeds optimizer.grad_clip. Throws as Optimizer::step() does.
  void apply(CausalLm<S>& model, double lr, double norm);

  /// The tape of the forward and backward passes, for observers.
  Tape<S>& tape() { return tape_; }
  Optimizer<S>& optimizer() { return *optimizer_; }

 private:
  Index accumulation_;
  std::uint64_t seed_;
  double grad_clip_;
  std::unique_ptr<Optimizer<S>> optimizer_;
  Tape<S> tape_;
};

/// The optimiser that a config asks for.
template <class S>
std::unique_ptr<Optimizer<S>> make_optimizer(const Config& config, const ParameterStore<S>& store);

/// The learning rate of the update that follows `step` completed ones. Throws RangeError for a step below 0.
double learning_rate(const Config& config, Index step);

}  // namespace handgrad
