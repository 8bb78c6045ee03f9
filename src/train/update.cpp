#include "handgrad/train/update.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/float_environment.h"
#include "core/math.h"
#include "handgrad/core/errors.h"
#include "handgrad/optim/schedule.h"

namespace handgrad {

template <class S>
std::unique_ptr<Optimizer<S>> make_optimizer(const Config& config, const ParameterStore<S>& store) {
  const OptimizerConfig& o = config.optimizer;
  switch (o.name) {  // no default: the compiler warns about a kind without a case
    case OptimizerKind::adamw:
      return std::make_unique<AdamW<S>>(
          store, AdamWOptions{.beta1 = o.beta1, .beta2 = o.beta2, .eps = o.eps, .weight_decay = o.weight_decay});
    case OptimizerKind::sgd:
      return std::make_unique<Sgd<S>>(store, SgdOptions{.momentum = o.momentum, .weight_decay = o.weight_decay});
  }
  throw ConfigError(fmt::format("optimizer.name: {} is not a known kind", static_cast<int>(o.name)));
}

double learning_rate(const Config& config, Index step) {
  if (step < 0) throw RangeError(fmt::format("learning_rate: the step must be 0 or more, got {}", step));
  const ScheduleConfig& s = config.schedule;
  const Index steps = config.train.steps;
  return Schedule{.kind = s.kind,
                  .peak = config.optimizer.lr,
                  .floor = config.optimizer.min_lr,
                  .warmup = s.warmup_steps,
                  .total = steps,
                  .decay = s.decay_steps > 0 ? s.decay_steps : std::max<Index>(1, steps / 5)}
      .at(step);
}

template <class S>
Update<S>::Update(const Config& config, CausalLm<S>& model)
    : accumulation_(config.train.accumulation), seed_(config.train.seed), grad_clip_(config.optimizer.grad_clip) {
  model.allocate_gradients();
  optimizer_ = make_optimizer<S>(config, model.store());
}

template <class S>
LossSum Update<S>::make_gradients(CausalLm<S>& model, const std::function<MicroBatch(Index)>& micro_batch,
                                  const std::function<bool()>& stop) {
  const FloatEnvironment environment;
  LossSum loss;
  model.store().zero_gradients();
  for (Index i = 0; i < accumulation_ && !(i > 0 && stop && stop()); ++i) {
    const MicroBatch batch = micro_batch(i);
    tape_.reset();
    // All targets count, so each micro-batch has the same weight in the update.
    const LossOptions options{.divisor = std::ssize(batch.targets) * accumulation_, .report = &loss};
    const Index sequences = std::ssize(batch.inputs) / model.config().context;
    const Var<S> mean = model.loss(tape_, {batch.inputs, sequences}, batch.targets, options,
                                   {.training = true, .seed = seed_, .first_sample = batch.first_sample});
    if (!is_finite(mean.item())) loss.sum = static_cast<double>(mean.item());
    tape_.backward(mean);
  }
  model.finish_gradients();
  return loss;
}

template <class S>
void Update<S>::apply(CausalLm<S>& model, double lr, double norm) {
  const FloatEnvironment environment;
  optimizer_->step(model.store(), lr, clip_factor(norm, grad_clip_));
}

template std::unique_ptr<Optimizer<float>> make_optimizer(const Config&, const ParameterStore<float>&);
template std::unique_ptr<Optimizer<double>> make_optimizer(const Config&, const ParameterStore<double>&);
template class Update<float>;
template class Update<double>;

}  // namespace handgrad
