#include "handgrad/train/trainer.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/float_environment.h"
#include "core/math.h"
#include "handgrad/config/resume.h"
#include "handgrad/config/validate.h"
#include "handgrad/core/errors.h"
#include "handgrad/text/windows.h"

namespace handgrad {
namespace {

constexpr double largest_norm = 1e18;

// The reason why an update must not be applied; empty if it may be.
std::string trouble_with(const LossSum& loss, double norm) {
  if (loss.sum != loss.sum) return "the loss is nan";
  if (!is_finite(loss.sum)) return fmt::format("the loss is {}", loss.mean());
  if (norm != norm) return "the gradient norm is nan";  // without its sign, which has no meaning
  if (!is_finite(norm)) return "the gradient norm is inf";
  if (norm > largest_norm) return fmt::format("the gradient norm is {:.6g}, above {:.0e}", norm, largest_norm);
  return "";
}

}  // namespace

bool is_done(const Config& config, const LoopState& loop) {
  const bool out_of_patience = config.eval.patience > 0 && loop.evaluations_since_best >= config.eval.patience;
  return loop.step >= config.train.steps || out_of_patience;
}

namespace {

// The text must be the same (its path may differ): windows and tokenizer depend on it.
void check_text(const Checkpoint& checkpoint, const DataSource& source) {
  if (source.fingerprint() == checkpoint.data_fingerprint()) return;
  const Index then = checkpoint.data_tokens(), now = source.token_count();
  const std::string difference =
      then == 0 || then == now
          ? fmt::format("fingerprint {:016x}, now {:016x}", checkpoint.data_fingerprint(), source.fingerprint())
          : fmt::format("{} tokens then, {} now", then, now);
  throw ConfigError(
      fmt::format("{}: data.files: the text is not the one that this run was trained on ({}); git or an editor may "
                  "have changed its line ends; --init starts a new run with these weights",
                  checkpoint.path(), difference));
}

}  // namespace

Trainer::Trainer(const Config& config, DataSource source, bool initialise)
    : config_(complete_config(config, source.tokenizer().name(), source.tokenizer().vocab_size())),
      source_(std::move(source)),
      model_(config_.model),
      batches_(config_, source_.train()) {
  if (initialise) model_.initialise(config_.train.seed);
  update_ = std::make_unique<Update<float>>(config_, model_);
  evaluation_starts_ = evaluation_starts(std::ssize(source_.validation()), config_.model.context,
                                         config_.eval.batches * config_.train.batch_size * config_.train.accumulation);
}

Trainer::Trainer(const Config& config, DataSource source) : Trainer(config, std::move(source), true) {}

Trainer Trainer::resume(const std::string& path, DataSource source) {
  const Checkpoint checkpoint = Checkpoint::load(path);
  return resume(checkpoint, checkpoint.config(), std::move(source));
}

Trainer Trainer::resume(const Checkpoint& checkpoint, const Config& requested, DataSource source) {
  if (source.tokenizer().fingerprint() != checkpoint.tokenizer()->fingerprint()) {
    throw ConfigError(fmt::format("{}: the tokenizer of the run ({}, {} tokens) is not the given one ({}, {} tokens)",
                                  checkpoint.path(), checkpoint.tokenizer()->name(),
                                  checkpoint.tokenizer()->vocab_size(), source.tokenizer().name(),
                                  source.tokenizer().vocab_size()));
  }
  const Config wanted = complete_config(requested, source.tokenizer().name(), source.tokenizer().vocab_size());
  check_resume(checkpoint.config(), wanted, checkpoint.loop().step);
  check_text(checkpoint, source);
  Trainer trainer(wanted, std::move(source), false);
  checkpoint.restore(trainer.model_.store());
  checkpoint.restore(trainer.model_.store(), trainer.optimizer());
  trainer.loop_ = checkpoint.loop();
  return trainer;
}

Trainer Trainer::from_weights(const Checkpoint& checkpoint, const Config& config, DataSource source) {
  Trainer trainer(config, std::move(source), false);
  checkpoint.restore(trainer.model_.store());
  return trainer;
}

Update<float>& Trainer::whole_update() const {
  if (!update_) throw Error("trainer: it has been moved from");
  return *update_;
}

bool Trainer::done() const { return is_done(config_, loop_); }

LossSum Trainer::make_gradients(GraphObserver<float>* observer) {
  std::optional<Tape<float>::Watch> watch;
  if (observer) watch.emplace(update_->tape(), *observer);
  return update_->make_gradients(model_, [&](Index i) { return batches_.micro_batch(loop_.step, i); });
}

StepReport Trainer::step() {
  whole_update();
  const StepReport report = update();
  for (TrainObserver* observer : observers_) observer->on_step(report);
  return report;
}

StepReport Trainer::update() {
  const FloatEnvironment environment;
  std::optional<HealthMonitor<float>> health;
  const Index health_every = config_.log.health_every;
  if (health_every > 0 && (loop_.step + 1) % health_every == 0) health.emplace(model_.store());
  const LossSum loss = make_gradients(health ? &*health : nullptr);
  const double norm = update_->norm(model_), lr = learning_rate(config_, loop_.step);
  const std::string trouble = trouble_with(loss, norm);
  if (!trouble.empty() && !may_skip()) refuse_step(trouble);
  if (trouble.empty()) {
    update_->apply(model_, lr, norm);
    loop_.updates = update_->optimizer().updates();
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

bool Trainer::may_skip() const {
  constexpr Index most_in_row = 3, most_in_all = 10;
  return config_.train.on_nonfinite == NonFinitePolicy::skip && loop_.skipped_in_row + 1 < most_in_row &&
         loop_.skipped + 1 < most_in_all;
}

// Repeats the step with an observer of all operations. Only gradients change.
void Trainer::refuse_step(const std::string& trouble) {
  NonFiniteTracer<float> tracer;
  const Tape<float>::Watch watch(update_->tape(), tracer);
  Index last = 0;
  update_->make_gradients(
      model_, [&](Index i) { return batches_.micro_batch(loop_.step, last = i); },
      [&] { return tracer.origin() != nullptr; });
  std::string what = fmt::format("step {}: {}; the update was not applied", loop_.step + 1, trouble);
  if (tracer.origin()) what += "; first seen in " + tracer.origin()->to_string();
  if (loop_.skipped > 0) what += fmt::format("; {} earlier updates were skipped", loop_.skipped);
  throw NonFiniteStep(what, loop_.step + 1, tracer.origin(), batches_.starts(loop_.step, last));
}

EvaluationReport Trainer::evaluate(const EvaluationWatch& watch) {
  whole_update();
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

void Trainer::save(const std::string& path, FileSystem* fs) {
  whole_update();
  save_checkpoint<float>(fs, path,
                         {config_, source_.tokenizer(), loop_, model_.store(), update_->optimizer(),
                          source_.fingerprint(), source_.token_count()});
  const SaveReport report{loop_.step, path};
  for (TrainObserver* observer : observers_) observer->on_save(report);
}

}  // namespace handgrad
