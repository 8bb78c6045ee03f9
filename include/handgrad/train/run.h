#pragma once

#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "handgrad/files/file_system.h"
#include "handgrad/files/run_lock.h"
#include "handgrad/train/trainer.h"

namespace handgrad {

class MetricsLog;

/// A trainer with a run folder (checkpoint/run_folder.h). It logs, evaluates and saves as configured.
///
///   Run run(Trainer(config, source), "runs/mine");
///   while (!run.done() && !stop.stop_requested()) run.advance(stop);
///   run.save();
class Run {
 public:
  /// Creates the folder if needed, locks it, writes config.toml, truncates metrics.jsonl to the step of the trainer,
  /// and renames unusable checkpoint files of later steps. Throws DataError if another process has locked the folder or
  /// has trained the run further, or if writing fails.
  Run(Trainer trainer, const std::string& folder, FileSystem* fs = posix_files());
  Run(Run&&) noexcept;
  ~Run();

  Trainer& trainer() { return trainer_; }
  const Trainer& trainer() const { return trainer_; }
  const std::string& folder() const { return folder_; }
  /// New names of the checkpoint files that were renamed.
  const std::vector<std::string>& set_aside() const { return set_aside_; }
  /// True after the last step and its evaluation.
  bool done() const;
  /// Makes one step, and then a row of metrics, a checkpoint and an evaluation, if they are due; after the last step
  /// they are. A checkpoint is written before the evaluation, and again with its result. A stop request ends the
  /// evaluation early; if the run is then saved and resumed, the first call only makes that evaluation, and returns
  /// nullopt. Before it throws NonFiniteStep it writes the operands of the operation at fault to nonfinite-step-N.h5.
  std::optional<StepReport> advance(std::stop_token stop = {});
  /// Writes a checkpoint, if this step has none: metrics, file, links, removal of old files, in this order, each
  /// durable.
  void save();

 private:
  StepReport guarded_step();
  void evaluate(std::stop_token stop);
  void update_links();

  Trainer trainer_;
  std::string folder_;
  FileSystem* fs_;
  std::unique_ptr<files::RunLock> lock_;
  std::unique_ptr<MetricsLog> log_;
  std::vector<std::string> set_aside_;
  Index saved_step_ = -1;
  bool saved_pending_ = false;  // the file of this step was written before its evaluation
  bool save_due_ = false;
};

/// Removes the files of a run from its folder (config, metrics, checkpoints), so that a new run can start there. Other
/// files are kept. Throws DataError if another process has locked the folder.
void clear_run_folder(FileSystem* fs, const std::string& folder);

}  // namespace handgrad
