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
  std::uint64_t first_sample = 0;  ///< Number of the first sequence, counted over the whole training, for dropout.
};

/// One update of the parameters of a model: gradients of all micro-batches, norm, clipping, step of the optimiser.
///
///   Update<float> update(config, model);
///   const LossSum loss = update.make_gradients(model, [&](Index i) { return micro_batches[i]; });
///   update.apply(model, learning_rate(config, step), update.norm(model));
///
/// The gradient is that of the mean loss over all targets of the update. Pass the model of the constructor to every
/// call.
template <class S>
class Update {
 public:
  /// `config` is resolved. Allocates the gradients of the model and makes the optimiser. Throws ResourceError.
  Update(const Config& config, CausalLm<S>& model);

  /// Computes the gradients of micro-batches 0 to train.accumulation - 1, which `micro_batch` returns; its spans must
  /// be valid until its next call. `stop`, if given, is called after each micro-batch; the others are skipped if it
  /// returns true. Returns the losses. Throws the errors of CausalLm::loss().
  LossSum make_gradients(CausalLm<S>& model, const std::function<MicroBatch(Index)>& micro_batch,
                         const std::function<bool()>& stop = {});
  /// Global L2 norm of the gradients, before clipping.
  double norm(const CausalLm<S>& model) const { return gradient_norm(model.store()); }
  /// Applies the gradients, scaled to norm optimizer.grad_clip if `norm` is larger. Throws the errors of
  /// Optimizer::step().
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

/// The optimiser of a config.
template <class S>
std::unique_ptr<Optimizer<S>> make_optimizer(const Config& config, const ParameterStore<S>& store);

/// The learning rate of the update after `step` completed ones. Throws RangeError for a step below 0.
double learning_rate(const Config& config, Index step);

}  // namespace handgrad
