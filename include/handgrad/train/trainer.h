#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "handgrad/checkpoint/checkpoint.h"
#include "handgrad/core/errors.h"
#include "handgrad/nn/causal_lm.h"
#include "handgrad/observe/health.h"
#include "handgrad/observe/nonfinite.h"
#include "handgrad/optim/schedule.h"
#include "handgrad/train/data_source.h"
#include "handgrad/train/evaluate.h"

namespace handgrad {

/// One completed update.
struct StepReport {
  Index step = 0;          ///< Updates completed, this one included.
  double loss = 0.0;       ///< Mean over the update's targets, before it, in nats.
  double lr = 0.0;         ///< What it was applied with: schedule(step - 1).
  double grad_norm = 0.0;  ///< Global, before clipping.
  Index tokens = 0;        ///< Targets trained on since step 0.
  bool skipped = false;    ///< Loss or gradient was not finite, and the update has not been applied.
  /// Every log.health_every steps. Of a skipped one, too: what was measured, update ratios of 0.
  std::optional<HealthReport> health;
};

/// A step whose loss or gradient was not finite: its update has not been applied.
class NonFiniteStep : public NonFiniteError {
 public:
  NonFiniteStep(const std::string& what, Index step, std::shared_ptr<const NonFiniteOrigin> origin,
                std::vector<Index> windows)
      : NonFiniteError(what), step_(step), origin_(std::move(origin)), windows_(std::move(windows)) {}
  Index step() const { return step_; }
  /// The first operation that made the number, found by doing the step again; null if the gradient is finite but huge.
  std::shared_ptr<const NonFiniteOrigin> origin() const { return origin_; }
  /// Index of the first training token of each sequence of the micro-batch that it happened in.
  const std::vector<Index>& windows() const { return windows_; }

 private:
  Index step_;
  std::shared_ptr<const NonFiniteOrigin> origin_;
  std::vector<Index> windows_;
};

struct EvaluationReport {
  Index step = 0;
  Evaluation validation;
  bool is_best = false;
};

struct SaveReport {
  Index step = 0;
  std::string path;
};

/// Told what happens, in the thread that trains, after it has happened. What an observer throws comes out of the call
/// that told it, and leaves the trainer whole.
class TrainObserver {
 public:
  virtual ~TrainObserver() = default;
  virtual void on_step(const StepReport&) {}
  /// During an evaluation, after each batch: windows read, of how many.
  virtual void on_evaluating(Index /*done*/, Index /*total*/) {}
  virtual void on_evaluation(const EvaluationReport&) {}
  virtual void on_save(const SaveReport&) {}
};

/// Trains one model. No globals, no printing, no signals: two trainers in two threads share nothing. Where other
/// programs use the cores, too, OMP_WAIT_POLICY=passive in the environment keeps waiting threads from spinning.
///
///   Trainer<float> trainer(config, source);          // or Trainer<float>::resume(path, source)
///   trainer.observe(progress);
///   while (!trainer.done()) trainer.step();
///   trainer.save("model.h5");
///
/// Of Trainer<double> there are the constructor of a new model and step(), to be compared with reference values.
template <class S>
class Trainer {
 public:
  /// A new model. Throws ConfigError, ResourceError; DataError if the config's context does not fit the source.
  Trainer(const Config& config, DataSource source);
  /// Goes on exactly where the checkpoint was written. Throws CheckpointError, and ConfigError if the source is not the
  /// text of that run.
  static Trainer resume(const std::string& path, DataSource source);
  /// The same with a checkpoint in memory, under a config that may differ from the stored one where that is harmless
  /// (config/resume.h). Throws ConfigError, naming keys and both values, where it is not.
  static Trainer resume(const Checkpoint& checkpoint, const Config& requested, DataSource source);
  /// A new run from a checkpoint's weights, with a fresh optimiser; the model's keys and the tokenizer must be its.
  static Trainer from_weights(const Checkpoint& checkpoint, const Config& config, DataSource source);

  /// Borrowed; must live as long as the trainer.
  void observe(TrainObserver& observer) { observers_.push_back(&observer); }
  /// Told of every operation of a training step; borrowed.
  void observe_graph(GraphObserver<S>& observer) { tape_.observe(observer); }

  /// True after train.steps steps, or when patience has run out.
  bool done() const;
  /// One update. If loss or gradient norm is not finite (a norm above 1e18 counts as infinite), the update is not
  /// applied: it is skipped, if the config says so, or else NonFiniteStep tells where the number was born.
  StepReport step();
  /// Loss on the fixed windows of validation; keeps count of the best. If the watch ends it, nothing has changed, and
  /// observers are not told.
  EvaluationReport evaluate(const EvaluationWatch& watch = {});
  /// Notes that this step's evaluation is still to come, for a checkpoint that is written before it. The next
  /// evaluate() or step() clears the note.
  void postpone_evaluation() { loop_.evaluation_pending = true; }
  /// Writes a checkpoint, durably. Throws DataError, NonFiniteError.
  void save(const std::string& path, FileSystem* fs = posix_files());

  const Config& config() const { return config_; }
  const LoopState& loop() const { return loop_; }
  const CausalLm<S>& model() const { return model_; }
  const DataSource& source() const { return source_; }
  Optimizer<S>& optimizer() { return require_whole(), *optimizer_; }
  CausalLm<S>& mutable_model() { return model_; }

 private:
  Trainer(const Config& config, DataSource source, bool initialise);
  // Throws Error for a trainer that has been moved from.
  void require_whole() const;
  void accumulate(Index micro_batch, LossSum& loss);
  void make_gradients(LossSum& loss, GraphObserver<S>* health);
  StepReport update();
  bool may_skip() const;
  [[noreturn]] void refuse_step(const std::string& trouble);

  Config config_;
  DataSource source_;
  CausalLm<S> model_;
  std::unique_ptr<Optimizer<S>> optimizer_;
  Schedule schedule_;
  LoopState loop_;
  Tape<S> tape_{true};
  Tape<S> evaluation_tape_{false};
  std::vector<TokenId> inputs_, targets_;
  std::vector<Index> evaluation_starts_;
  std::vector<TrainObserver*> observers_;
};

/// The rate of the update that follows `step` completed ones. Throws RangeError for a step below 0.
double learning_rate(const Config& config, Index step);

/// True after train.steps steps, or when patience has run out.
bool is_done(const Config& config, const LoopState& loop);

/// The optimiser that a config asks for.
template <class S>
std::unique_ptr<Optimizer<S>> make_optimizer(const Config& config, const ParameterStore<S>& store);

}  // namespace handgrad
