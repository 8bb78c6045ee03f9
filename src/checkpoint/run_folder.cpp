#include "handgrad/checkpoint/run_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>

#include "handgrad/core/errors.h"

namespace handgrad {
namespace {

namespace files = std::filesystem;

// The step of "step-00000250.h5"; -1 for other names.
Index step_of(std::string_view name) {
  if (!name.starts_with("step-") || !name.ends_with(".h5")) return -1;
  name = name.substr(5, name.size() - 8);
  Index step = -1;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), step);
  return error == std::errc{} && end == name.data() + name.size() ? step : -1;
}

}  // namespace

std::string checkpoint_name(Index step) { return fmt::format("step-{:08}.h5", step); }

std::string checkpoint_path(const std::string& run_folder, Index step) {
  return run_folder + "/checkpoints/" + checkpoint_name(step);
}

std::vector<Index> checkpoint_steps(const std::string& run_folder) {
  std::vector<Index> steps;
  std::error_code error;
  for (const auto& entry : files::directory_iterator(run_folder + "/checkpoints", error)) {
    const Index step = step_of(entry.path().filename().string());
    if (step >= 0) steps.push_back(step);
  }
  std::sort(steps.rbegin(), steps.rend());
  return steps;
}

NewestCheckpoint newest_checkpoint(const std::string& run_folder) {
  NewestCheckpoint newest;
  for (const Index step : checkpoint_steps(run_folder)) {
    try {
      newest.checkpoint = Checkpoint::load(checkpoint_path(run_folder, step));
      break;
    } catch (const CheckpointError& error) {
      newest.passed_over.emplace_back(error.what());
    }
  }
  return newest;
}

FoundCheckpoint find_checkpoint(const std::string& path) {
  std::error_code error;
  if (!files::is_directory(path, error)) return {Checkpoint::load(path), {}};
  std::string folder = path;
  while (folder.size() > 1 && folder.back() == '/') folder.pop_back();
  if (files::path(folder).filename() == "checkpoints") folder = folder_of(folder);
  NewestCheckpoint newest = newest_checkpoint(folder);
  if (!newest.checkpoint) {
    throw CheckpointError(newest.passed_over.empty() ? fmt::format("{}: holds no checkpoint", path)
                                                     : fmt::format("{}: holds no whole checkpoint: {}", path,
                                                                   fmt::join(newest.passed_over, "; ")));
  }
  return {std::move(*newest.checkpoint), std::move(newest.passed_over)};
}

bool is_run_folder(const std::string& folder) {
  std::error_code error;
  return files::exists(folder + "/lock", error) || !checkpoint_steps(folder).empty();
}

void retain_checkpoints(FileSystem* fs, const std::string& run_folder, Index keep, const LoopState& loop) {
  Index kept = 0;
  for (const Index step : checkpoint_steps(run_folder)) {
    if (step > loop.step) continue;
    if (kept < keep) {
      ++kept;
    } else if (step != loop.best_step) {
      remove_file(fs, checkpoint_path(run_folder, step));
    }
  }
}

}  // namespace handgrad
