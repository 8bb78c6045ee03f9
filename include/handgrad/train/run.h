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

/// A trainer with a run folder (checkpoint/run_folder.h): logs, evaluates and saves as the config says.
///
///   Run run(Trainer(config, source), "runs/mine");
///   while (!run.done() && !stop.stop_requested()) run.advance(stop);
///   run.save();
class Run {
 public:
  /// Takes the folder: creates it if needed, locks it, writes config.toml, cuts metrics.jsonl back to the trainer's
  /// step, and renames checkpoint files of later steps, which the trainer has passed over, out of the way. Throws
  /// DataError if another process holds the folder or has trained it further, or if writing fails.
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
  /// One step, and what is due after it: a row of metrics, a checkpoint, an evaluation. After the last step both are. A
  /// checkpoint that is due is written before the evaluation begins, and again with its result. A stop request ends the
  /// evaluation early; a run that is saved then evaluates first when it is resumed: that call does nothing else and
  /// returns nullopt. When it throws NonFiniteStep, the inputs of the operation at fault are in nonfinite-step-N.h5.
  std::optional<StepReport> advance(std::stop_token stop = {});
  /// Writes a checkpoint now, if this step has none: metrics, file, links, retention, in this order, each durable.
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
  bool saved_pending_ = false;  // that file was written before its evaluation
  bool save_due_ = false;
};

/// Removes what a run has written to its folder (config, metrics, checkpoints), so that a new one can begin. Other
/// files stay. Throws DataError if another process holds the folder.
void clear_run_folder(FileSystem* fs, const std::string& folder);

}  // namespace handgrad
