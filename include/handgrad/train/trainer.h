#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "handgrad/checkpoint/checkpoint.h"
#include "handgrad/core/errors.h"
#include "handgrad/files/file_system.h"
#include "handgrad/observe/health.h"
#include "handgrad/observe/nonfinite.h"
#include "handgrad/train/batches.h"
#include "handgrad/train/data_source.h"
#include "handgrad/train/evaluate.h"

namespace handgrad {

/// One completed update.
struct StepReport {
  Index step = 0;          ///< Updates completed, this one included.
  double loss = 0.0;       ///< Mean over the targets of the update, with the weights before it, in nats.
  double lr = 0.0;         ///< The learning rate of this update: schedule(step - 1).
  double grad_norm = 0.0;  ///< Global, before clipping.
  Index tokens = 0;        ///< Number of targets since step 0.
  bool skipped = false;    ///< The loss or the gradient was not finite, and the update was not applied.
  /// Present every log.health_every steps. After a skipped update the update ratios are 0.
  std::optional<HealthReport> health;
};

/// The loss or the gradient of a step was not finite, and its update was not applied.
class NonFiniteStep : public NonFiniteError {
 public:
  NonFiniteStep(const std::string& what, Index step, std::shared_ptr<const NonFiniteOrigin<float>> origin,
                std::vector<Index> windows)
      : NonFiniteError(what), step_(step), origin_(std::move(origin)), windows_(std::move(windows)) {}
  Index step() const { return step_; }
  /// The operation that first produced a non-finite number, found by repeating the step; null if the gradient is finite
  /// but its norm is above 1e18.
  std::shared_ptr<const NonFiniteOrigin<float>> origin() const { return origin_; }
  /// Index of the first training token of each sequence of that micro-batch.
  const std::vector<Index>& windows() const { return windows_; }

 private:
  Index step_;
  std::shared_ptr<const NonFiniteOrigin<float>> origin_;
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

/// Receives the events of a trainer, on its thread. An exception of an observer propagates out of the call that
/// notified it; the trainer remains valid.
class TrainObserver {
 public:
  virtual ~TrainObserver() = default;
  virtual void on_step(const StepReport&) {}
  /// After each batch of an evaluation: the windows evaluated so far and their total.
  virtual void on_evaluating(Index /*done*/, Index /*total*/) {}
  virtual void on_evaluation(const EvaluationReport&) {}
  virtual void on_save(const SaveReport&) {}
};

/// Trains one model in float. It has no global state, prints nothing and handles no signals; trainers on different
/// threads are independent. If other programs use the cores too, set OMP_WAIT_POLICY=passive in the environment:
/// waiting threads then sleep instead of spinning.
///
///   Trainer trainer(config, source);          // or Trainer::resume(path, source)
///   trainer.observe(progress);
///   while (!trainer.done()) trainer.step();
///   trainer.save("model.h5");
class Trainer {
 public:
  /// A new model. Throws ConfigError, ResourceError, and DataError if the source is shorter than the context.
  Trainer(const Config& config, DataSource source);
  /// Continues a run from a checkpoint, with the same bits. Throws CheckpointError, and ConfigError if the source is
  /// not the text of that run.
  static Trainer resume(const std::string& path, DataSource source);
  /// The same with a loaded checkpoint and a config that may differ from the stored one in certain keys
  /// (config/resume.h). For other differences throws ConfigError with the keys and both values.
  static Trainer resume(const Checkpoint& checkpoint, const Config& requested, DataSource source);
  /// A new run with the weights of a checkpoint and a new optimiser. Model keys and tokenizer must be the same.
  static Trainer from_weights(const Checkpoint& checkpoint, const Config& config, DataSource source);

  /// The observer is not owned, and must outlive the trainer.
  void observe(TrainObserver& observer) { observers_.push_back(&observer); }
  /// Adds an observer of all operations of training steps. It is not owned.
  void observe_graph(GraphObserver<float>& observer) { whole_update().tape().observe(observer); }

  /// True after train.steps steps, or after eval.patience evaluations without a new best.
  bool done() const;
  /// Makes one update. If the loss or the gradient norm is not finite (or the norm is above 1e18), the update is not
  /// applied. It is then skipped if train.on_nonfinite = "skip"; else NonFiniteStep is thrown, with the operation that
  /// first produced a non-finite number.
  StepReport step();
  /// Computes the loss on fixed windows of the validation text, and updates the count of evaluations without a new
  /// best. If `watch` ends it, nothing changes and no observer is called.
  EvaluationReport evaluate(const EvaluationWatch& watch = {});
  /// Records that the evaluation of this step is pending, for a checkpoint that is written before it. The next
  /// evaluate() or step() clears the record.
  void postpone_evaluation() { loop_.evaluation_pending = true; }
  /// Writes a checkpoint, durably. Throws DataError, NonFiniteError.
  void save(const std::string& path, FileSystem* fs = posix_files());

  const Config& config() const { return config_; }
  const LoopState& loop() const { return loop_; }
  const CausalLm<float>& model() const { return model_; }
  const DataSource& source() const { return source_; }
  Optimizer<float>& optimizer() { return whole_update().optimizer(); }
  CausalLm<float>& mutable_model() { return model_; }

 private:
  Trainer(const Config& config, DataSource source, bool initialise);
  // Throws Error for a moved-from trainer.
  Update<float>& whole_update() const;
  LossSum make_gradients(GraphObserver<float>* observer);
  StepReport update();
  bool may_skip() const;
  [[noreturn]] void refuse_step(const std::string& trouble);

  Config config_;
  DataSource source_;
  CausalLm<float> model_;
  TrainingBatches batches_;
  std::unique_ptr<Update<float>> update_;
  LoopState loop_;
  Tape<float> evaluation_tape_{false};
  std::vector<Index> evaluation_starts_;
  std::vector<TrainObserver*> observers_;
};

/// True after train.steps steps, or when patience has run out.
bool is_done(const Config& config, const LoopState& loop);

}  // namespace handgrad
