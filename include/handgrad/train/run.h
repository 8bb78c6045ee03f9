#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "handgrad/core/files.h"
#include "handgrad/train/trainer.h"

namespace handgrad {

/// A trainer with a run folder (checkpoint/run_folder.h): logs, evaluates and saves as the config says.
///
///   Run run(Trainer<float>(config, source), "runs/mine");
///   while (!run.done() && !stop) run.advance();
///   if (stop) run.save();
class Run {
 public:
  /// Takes the folder: makes it if need be, locks it, writes config.toml, cuts metrics.jsonl back to the trainer's
  /// step. Throws DataError if another process holds it or has trained it further, or the disk says no.
  Run(Trainer<float> trainer, const std::string& folder, FileSystem* fs = posix_files());

  Trainer<float>& trainer() { return trainer_; }
  const std::string& folder() const { return folder_; }
  bool done() const { return trainer_.done(); }
  /// One step, and what is due after it: a row of metrics, an evaluation, a checkpoint. After the last step both are.
  /// When it throws NonFiniteStep, what the operation at fault had read lies in nonfinite-step-N.h5.
  StepReport advance();
  /// Writes a checkpoint now, if this step has none: metrics, file, links, retention, in this order, each durable.
  void save();

 private:
  StepReport guarded_step();
  void log_step(const StepReport& report);
  void log_health(const StepReport& report);
  void log_evaluation(const EvaluationReport& report);

  Trainer<float> trainer_;
  std::string folder_;
  FileSystem* fs_;
  std::unique_ptr<RunLock> lock_;
  std::unique_ptr<Appender> metrics_;
  Index saved_step_ = -1;
  bool save_due_ = false;
  Index logged_tokens_ = 0;
  std::chrono::steady_clock::time_point started_, logged_;
};

/// Removes what a run has written to its folder (config, metrics, checkpoints), so that a new one can begin. Other
/// files stay. Throws DataError if another process holds the folder.
void clear_run_folder(FileSystem* fs, const std::string& folder);

}  // namespace handgrad
