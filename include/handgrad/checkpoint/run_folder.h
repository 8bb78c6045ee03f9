#pragma once

#include <optional>
#include <string>
#include <vector>

#include "handgrad/checkpoint/checkpoint.h"
#include "handgrad/files/file_system.h"

namespace handgrad {

// A run folder:
//   config.toml            the resolved config
//   metrics.jsonl          one row per logged step, health record and evaluation
//   lock                   locked by the one process that writes
//   checkpoints/           step-00000250.h5 ..., and the links latest.h5 and best.h5

/// "step-00000250.h5"
std::string checkpoint_name(Index step);

/// The steps of the checkpoint files in a run folder (by name), newest first. Empty if the folder does not exist.
std::vector<Index> checkpoint_steps(const std::string& run_folder);

/// The path of the checkpoint of a step.
std::string checkpoint_path(const std::string& run_folder, Index step);

/// The result of a search for a checkpoint.
struct FoundCheckpoint {
  std::optional<Checkpoint> checkpoint;  ///< Empty: none was found.
  std::vector<std::string> passed_over;  ///< "path: reason" of each file that was not used.
  bool has_unreadable = false;           ///< Some of these may be checkpoints (*.h5).
};

/// The newest valid checkpoint of a run folder. Files whose name and content state the same step are preferred. Only if
/// there is none, files of other names or steps are used (copies made by people or synchronising programs).
FoundCheckpoint newest_checkpoint(const std::string& run_folder);

/// The checkpoint that a CHECKPOINT argument refers to: a file, a link, or the newest one of a run folder; never empty.
/// Throws CheckpointError if there is none.
FoundCheckpoint find_checkpoint(const std::string& path);

/// Does the folder contain a run: the lock, which a run creates first, or checkpoints? A config.toml alone may be a
/// user's own file.
bool is_run_folder(const std::string& folder);

/// Renames the files named as checkpoints of steps after `step` (damaged files, copies with a wrong number, folders),
/// so that the run does not replace or count them. Returns the new paths. Throws DataError.
std::vector<std::string> set_aside_later_checkpoints(FileSystem* fs, const std::string& run_folder, Index step);

/// Of the checkpoints up to the loop's step, removes all but the newest `keep` and the best one. Files of later steps
/// are neither counted nor removed.
void retain_checkpoints(FileSystem* fs, const std::string& run_folder, Index keep, const LoopState& loop);

}  // namespace handgrad
