#include "handgrad/train/trainer.h"

#include <fmt/format.h>

#include <algorithm>
#include <type_traits>

#include "core/float_environment.h"
#include "core/math.h"
#include "handgrad/config/resume.h"
#include "handgrad/config/validate.h"
#include "handgrad/core/errors.h"
#include "handgrad/text/windows.h"

namespace handgrad {
namespace {

constexpr double largest_norm = 1e18;

Schedule schedule_of(const Config& config) {
  Schedule schedule;
  schedule.kind = config.schedule.kind;
  schedule.peak = config.optimizer.lr;
  schedule.floor = config.optimizer.min_lr;
  schedule.warmup = config.schedule.warmup_steps;
  schedule.total = config.train.steps;
  schedule.decay =
      config.schedule.decay_steps > 0 ? config.schedule.decay_steps : std::max<Index>(1, config.train.steps / 5);
  return schedule;
}

TokenWindows windows_of(const Config& config, const DataSource& source) {
  return TokenWindows(source.train(), config.model.context, config.data.order,
                      static_cast<std::uint64_t>(config.train.seed));
}

// Runs are in float. Training in double, which is for comparison with reference values, is watched by nobody.
template <class S>
struct Nobody final : GraphObserver<S> {
  Nobody() = default;
  explicit Nobody(const ParameterStore<S>&) {}
  std::shared_ptr<const NonFiniteOrigin> origin() const { return nullptr; }
  HealthReport report() const { return {}; }
};
template <class S>
using Tracer = std::conditional_t<std::is_same_v<S, float>, NonFiniteTracer, Nobody<S>>;
template <class S>
using Monitor = std::conditional_t<std::is_same_v<S, float>, HealthMonitor, Nobody<S>>;

// What is wrong with a step; empty if nothing is.
std::string trouble_with(const LossSum& loss, double norm) {
  if (loss.sum != loss.sum) return "the loss is nan";
  if (!is_finite(loss.sum)) return fmt::format("the loss is {}", loss.mean());
  if (norm != norm) return "the gradient norm is nan";  // whose sign means nothing
  if (!is_finite(norm)) return "the gradient norm is inf";
  if (norm > largest_norm) return fmt::format("the gradient norm is {:.6g}, above {:.0e}", norm, largest_norm);
  return "";
}

}  // namespace

double learning_rate(const Config& config, Index step) {
  if (step < 0) throw RangeError(fmt::format("learning_rate: 0 steps or more are needed, got {}", step));
  return schedule_of(config).at(step);
}

bool is_done(const Config& config, const LoopState& loop) {
  const bool out_of_patience = config.eval.patience > 0 && loop.evaluations_since_best >= config.eval.patience;
  return loop.step >= config.train.steps || out_of_patience;
}

template <class S>
std::unique_ptr<Optimizer<S>> make_optimizer(const Config& config, const ParameterStore<S>& store) {
  const OptimizerConfig& o = config.optimizer;
  if (o.name == OptimizerKind::sgd) {
    return std::make_unique<Sgd<S>>(store, SgdOptions{.momentum = o.momentum, .weight_decay = o.weight_decay});
  }
  return std::make_unique<AdamW<S>>(
      store, AdamWOptions{.beta1 = o.beta1, .beta2 = o.beta2, .eps = o.eps, .weight_decay = o.weight_decay});
}

namespace {

// A text may move, but it must be the same: the order of its windows and the tokenizer come from it.
void check_text(const Checkpoint& checkpoint, const DataSource& source) {
  if (source.fingerprint() == checkpoint.data_fingerprint()) return;
  const Index then = checkpoint.data_tokens(), now = source.token_count();
  const std::string difference =
      then == 0 || then == now
          ? fmt::format("fingerprint {:016x}, now {:016x}", checkpoint.data_fingerprint(), source.fingerprint())
          : fmt::format("{} tokens then, {} now", then, now);
  throw ConfigError(
      fmt::format("{}: data.files: the text is not the one that this run was trained on ({}); git or an editor may "
                  "have changed its line ends; --init begins a new run from these weights",
                  checkpoint.path(), difference));
}

}  // namespace

template <class S>
Trainer<S>::Trainer(const Config& config, DataSource source, bool initialise)
    : config_(complete_config(config, source.tokenizer().name(), source.tokenizer().vocab_size())),
      source_(std::move(source)),
      model_(config_.model),
      schedule_(schedule_of(config_)) {
  windows_of(config_, source_);  // throws if the text is too short
  if (initialise) model_.initialise(static_cast<std::uint64_t>(config_.train.seed));
  model_.store().allocate_gradients();
  if (config_.model.tie_embeddings) model_.store().defer(model_.embedding_parameter());
  optimizer_ = make_optimizer<S>(config_, model_.store());
  const auto tokens = static_cast<std::size_t>(config_.train.batch_size * config_.model.context);
  inputs_.resize(tokens);
  targets_.resize(tokens);
  evaluation_starts_ = evaluation_starts(static_cast<Index>(source_.validation().size()), config_.model.context,
                                         config_.eval.batches * config_.train.batch_size * config_.train.accumulation);
}

template <class S>
Trainer<S>::Trainer(const Config& config, DataSource source) : Trainer(config, std::move(source), true) {}

template <class S>
Trainer<S> Trainer<S>::resume(const std::string& path, DataSource source) {
  const Checkpoint checkpoint = Checkpoint::load(path);
  return resume(checkpoint, checkpoint.config(), std::move(source));
}

template <class S>
Trainer<S> Trainer<S>::resume(const Checkpoint& checkpoint, const Config& requested, DataSource source) {
  if (source.tokenizer().fingerprint() != checkpoint.tokenizer()->fingerprint()) {
    throw ConfigError(
        fmt::format("{}: the run's {} tokenizer of {} tokens is not the {} tokenizer of {} tokens given now",
                    checkpoint.path(), checkpoint.tokenizer()->name(), checkpoint.tokenizer()->vocab_size(),
                    source.tokenizer().name(), source.tokenizer().vocab_size()));
  }
  const Config wanted = complete_config(requested, source.tokenizer().name(), source.tokenizer().vocab_size());
  check_resume(checkpoint.config(), wanted, checkpoint.loop().step);
  check_text(checkpoint, source);
  Trainer trainer(wanted, std::move(source), false);
  checkpoint.restore(trainer.model_.store());
  checkpoint.restore(trainer.model_.store(), *trainer.optimizer_);
  trainer.loop_ = checkpoint.loop();
  return trainer;
}

template <class S>
Trainer<S> Trainer<S>::from_weights(const Checkpoint& checkpoint, const Config& config, DataSource source) {
  Trainer trainer(config, std::move(source), false);
  checkpoint.restore(trainer.model_.store());
  return trainer;
}

template <class S>
void Trainer<S>::require_whole() const {
  if (!optimizer_) throw Error("trainer: it has been moved from");
}

template <class S>
bool Trainer<S>::done() const {
  return is_done(config_, loop_);
}

template <class S>
void Trainer<S>::accumulate(Index micro_batch, LossSum& loss) {
  const Index samples = config_.train.batch_size;
  const Index first = (loop_.step * config_.train.accumulation + micro_batch) * samples;
  windows_of(config_, source_).fill(first, inputs_, targets_);
  tape_.reset();
  LossOptions options;
  options.divisor =
      static_cast<Index>(targets_.size()) * config_.train.accumulation;  // every target of a window is valid
  options.report = &loss;
  const ForwardOptions<S> forward{true, static_cast<std::uint64_t>(config_.train.seed),
                                  static_cast<std::uint64_t>(first)};
  const Var<S> mean = model_.loss(tape_, {inputs_, samples}, targets_, options, forward);
  if (!is_finite(mean.item())) loss.sum = static_cast<double>(mean.item());
  tape_.backward(mean);
}

template <class S>
void Trainer<S>::make_gradients(LossSum& loss, GraphObserver<S>* health) {
  std::optional<typename Tape<S>::Watch> watch;
  if (health) watch.emplace(tape_, *health);
  model_.store().zero_gradients();
  for (Index micro_batch = 0; micro_batch < config_.train.accumulation; ++micro_batch) accumulate(micro_batch, loss);
  model_.store().fold_deferred();
}

template <class S>
StepReport Trainer<S>::step() {
  require_whole();
  const StepReport report = update();
  for (TrainObserver* observer : observers_) observer->on_step(report);
  return report;
}

template <class S>
StepReport Trainer<S>::update() {
  const FloatEnvironment environment;
  ParameterStore<S>& store = model_.store();
  std::optional<Monitor<S>> health;
  const Index health_every = config_.log.health_every;
  if (health_every > 0 && (loop_.step + 1) % health_every == 0) health.emplace(store);
  LossSum loss;
  make_gradients(loss, health ? &*health : nullptr);
  const double norm = gradient_norm(store), lr = schedule_.at(loop_.step);
  const std::string trouble = trouble_with(loss, norm);
  if (!trouble.empty() && !may_skip()) refuse_step(trouble);
  if (trouble.empty()) {
    optimizer_->step(store, lr, clip_factor(norm, config_.optimizer.grad_clip));
    loop_.updates = optimizer_->updates();
    loop_.tokens += loss.targets;
    loop_.skipped_in_row = 0;
  } else {
    ++loop_.skipped;
    ++loop_.skipped_in_row;
  }
  ++loop_.step;
  loop_.evaluation_pending = false;
  StepReport report{loop_.step, loss.mean(), lr, norm, loop_.tokens, !trouble.empty(), {}};
  if (health) report.health = health->report();
  return report;
}

template <class S>
bool Trainer<S>::may_skip() const {
  constexpr Index most_in_row = 3, most_in_all = 10;
  return config_.train.on_nonfinite == NonFinitePolicy::skip && loop_.skipped_in_row + 1 < most_in_row &&
         loop_.skipped + 1 < most_in_all;
}

// Does the step again, watching every operation. Nothing but gradients changes.
template <class S>
void Trainer<S>::refuse_step(const std::string& trouble) {
  Tracer<S> tracer;
  const typename Tape<S>::Watch watch(tape_, tracer);
  model_.store().zero_gradients();
  Index micro_batch = 0;
  LossSum loss;
  while (micro_batch < config_.train.accumulation && !tracer.origin()) accumulate(micro_batch++, loss);
  std::vector<Index> windows;
  const Index samples = config_.train.batch_size;
  const TokenWindows order = windows_of(config_, source_);
  for (Index i = 0; i < samples; ++i) {
    windows.push_back(order.start((loop_.step * config_.train.accumulation + micro_batch - 1) * samples + i));
  }
  std::string what = fmt::format("step {}: {}; the update has not been applied", loop_.step + 1, trouble);
  if (tracer.origin()) what += "; first seen in " + tracer.origin()->to_string();
  if (loop_.skipped > 0) what += fmt::format("; {} updates have been skipped before", loop_.skipped);
  throw NonFiniteStep(what, loop_.step + 1, tracer.origin(), std::move(windows));
}

template <class S>
EvaluationReport Trainer<S>::evaluate(const EvaluationWatch& watch) {
  require_whole();
  EvaluationReport report;
  report.step = loop_.step;
  const EvaluationWatch told = [&](Index done, Index total) {
    for (TrainObserver* observer : observers_) observer->on_evaluating(done, total);
    return !watch || watch(done, total);
  };
  report.validation = evaluate_windows(model_, source_.tokenizer(), source_.validation(), evaluation_starts_,
                                       config_.train.batch_size, evaluation_tape_, told);
  if (!report.validation.complete) return report;
  loop_.evaluation_pending = false;
  report.is_best = note_evaluation(loop_, report.validation.loss);
  for (TrainObserver* observer : observers_) observer->on_evaluation(report);
  return report;
}

template <class S>
void Trainer<S>::save(const std::string& path, FileSystem* fs) {
  require_whole();
  save_checkpoint<S>(
      fs, path,
      {config_, source_.tokenizer(), loop_, model_.store(), *optimizer_, source_.fingerprint(), source_.token_count()});
  const SaveReport report{loop_.step, path};
  for (TrainObserver* observer : observers_) observer->on_save(report);
}

template std::unique_ptr<Optimizer<float>> make_optimizer(const Config&, const ParameterStore<float>&);
template std::unique_ptr<Optimizer<double>> make_optimizer(const Config&, const ParameterStore<double>&);
template class Trainer<float>;
// Steps alone: checkpoints and evaluation are float's.
template Trainer<double>::Trainer(const Config&, DataSource);
template StepReport Trainer<double>::step();

}  // namespace handgrad
