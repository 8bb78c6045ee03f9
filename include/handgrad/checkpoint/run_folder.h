#pragma once

#include <optional>
#include <string>
#include <vector>

#include "handgrad/checkpoint/checkpoint.h"
#include "handgrad/files/file_system.h"

namespace handgrad {

// A run folder:
//   config.toml            the resolved config
//   metrics.jsonl          a row a step that is logged, a look at its health, an evaluation
//   lock                   held by the one process that writes
//   checkpoints/           step-00000250.h5 ..., and the links latest.h5 and best.h5

/// "step-00000250.h5"
std::string checkpoint_name(Index step);

/// Steps of the files in a run folder that have a checkpoint's name, newest first. Empty if there is no such folder.
std::vector<Index> checkpoint_steps(const std::string& run_folder);

/// Path of a step's checkpoint.
std::string checkpoint_path(const std::string& run_folder, Index step);

/// A checkpoint that was found, and what was passed over on the way, a line each.
struct FoundCheckpoint {
  Checkpoint checkpoint;
  std::vector<std::string> passed_over;
};

/// The newest checkpoint of a run folder that is whole; nullopt if there is none. The run's own files come first: the
/// step of the name is that of the content. Only without one of them are files taken that carry another name or step
/// (copies that people or synchronising programs made). Whatever is not taken is named in `passed_over`.
struct NewestCheckpoint {
  std::optional<Checkpoint> checkpoint;
  std::vector<std::string> passed_over;
  bool has_unreadable = false;  ///< Files that may be checkpoints (*.h5) are among them.
};
NewestCheckpoint newest_checkpoint(const std::string& run_folder);

/// What a user means by CHECKPOINT: a file, a link, or a run folder, of which the newest whole one is taken. Throws
/// CheckpointError if there is none.
FoundCheckpoint find_checkpoint(const std::string& path);

/// True if the folder is a run's: it has the lock, which is made before anything else, or checkpoints. A config.toml
/// alone may be somebody's own.
bool is_run_folder(const std::string& folder);

/// Renames what has the name of a checkpoint of a later step than `step`, so that the run neither replaces nor counts
/// it: damaged files, copies under a wrong number, folders. Returns the new paths. Throws DataError.
std::vector<std::string> set_aside_later_checkpoints(FileSystem* fs, const std::string& run_folder, Index step);

/// Of the checkpoints up to the loop's step, removes all but the newest `keep` and the best one. Files of later steps
/// neither count nor are removed.
void retain_checkpoints(FileSystem* fs, const std::string& run_folder, Index keep, const LoopState& loop);

}  // namespace handgrad
