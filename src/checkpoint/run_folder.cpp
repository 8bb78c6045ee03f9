#include "handgrad/checkpoint/run_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>

#include "handgrad/core/errors.h"
#include "handgrad/files/durable_write.h"
#include "handgrad/files/file_system.h"

namespace handgrad {
namespace {

namespace stdfs = std::filesystem;

constexpr std::string_view cannot_load = "cannot load ";
constexpr const char* set_aside_mark = ".set-aside";

// The step of "step-00000250.h5"; -1 for other names, "step-250.h5" included.
Index step_of(std::string_view name) {
  if (!name.starts_with("step-") || !name.ends_with(".h5")) return -1;
  const std::string_view digits = name.substr(5, name.size() - 8);
  Index step = -1;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), step);
  const bool number = error == std::errc{} && end == digits.data() + digits.size() && step >= 0;
  return number && name == checkpoint_name(step) ? step : -1;
}

// Names in the folder of checkpoints that handgrad does not write.
std::vector<std::string> foreign_names(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : stdfs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    const bool own = step_of(name) >= 0 || name == "latest.h5" || name == "best.h5" || name.ends_with(".tmp") ||
                     name.find(set_aside_mark) != std::string::npos;
    if (!own) names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

bool is_file(const std::string& path) {
  std::error_code error;
  return stdfs::is_regular_file(stdfs::symlink_status(path, error));
}

class Search {
 public:
  explicit Search(std::string run_folder) : folder_(std::move(run_folder) + "/checkpoints/") {}

  FoundCheckpoint run(const std::vector<Index>& steps) {
    for (const Index step : steps) {
      try_own(step);
      if (newest_.checkpoint) break;
    }
    for (const std::string& name : foreign_names(folder_)) {
      const bool wanted = !newest_.checkpoint && name.ends_with(".h5");
      wanted ? try_other(name) : pass_over(name, "not a file name that handgrad writes");
    }
    if (!newest_.checkpoint) newest_.checkpoint = std::move(other_);
    return std::move(newest_);
  }

 private:
  void pass_over(const std::string& name, const std::string& reason) {
    newest_.passed_over.push_back(fmt::format("{}{}: {}", folder_, name, reason));
  }

  std::optional<Checkpoint> load(const std::string& name) {
    try {
      return Checkpoint::load(folder_ + name);
    } catch (const CheckpointError& error) {
      std::string_view reason = error.what();  // contains the path
      if (reason.starts_with(cannot_load)) reason.remove_prefix(cannot_load.size());
      newest_.passed_over.emplace_back(reason);
      newest_.has_unreadable = true;
      return std::nullopt;
    }
  }

  void try_own(Index step) {
    std::optional<Checkpoint> checkpoint = load(checkpoint_name(step));
    if (!checkpoint) return;
    if (checkpoint->loop().step == step) {
      newest_.checkpoint = std::move(checkpoint);
    } else {
      pass_over(checkpoint_name(step), fmt::format("contains the checkpoint of step {}", checkpoint->loop().step));
      keep_newer(std::move(*checkpoint));
    }
  }

  void try_other(const std::string& name) {
    std::optional<Checkpoint> checkpoint = load(name);
    if (checkpoint) keep_newer(std::move(*checkpoint));
  }

  void keep_newer(Checkpoint checkpoint) {
    if (!other_ || checkpoint.loop().step > other_->loop().step) other_ = std::move(checkpoint);
  }

  std::string folder_;
  FoundCheckpoint newest_;
  std::optional<Checkpoint> other_;
};

}  // namespace

std::string checkpoint_name(Index step) { return fmt::format("step-{:08}.h5", step); }

std::string checkpoint_path(const std::string& run_folder, Index step) {
  return run_folder + "/checkpoints/" + checkpoint_name(step);
}

std::vector<Index> checkpoint_steps(const std::string& run_folder) {
  std::vector<Index> steps;
  std::error_code error;
  for (const auto& entry : stdfs::directory_iterator(run_folder + "/checkpoints", error)) {
    const Index step = step_of(entry.path().filename().string());
    if (step >= 0) steps.push_back(step);
  }
  std::sort(steps.rbegin(), steps.rend());
  return steps;
}

FoundCheckpoint newest_checkpoint(const std::string& run_folder) {
  return Search(run_folder).run(checkpoint_steps(run_folder));
}

std::vector<std::string> set_aside_later_checkpoints(FileSystem* fs, const std::string& run_folder, Index step) {
  std::vector<std::string> paths;
  for (const Index later : checkpoint_steps(run_folder)) {
    if (later <= step) break;
    const std::string path = checkpoint_path(run_folder, later);
    std::error_code error;
    std::string target = path + set_aside_mark;
    for (int n = 2; stdfs::exists(stdfs::symlink_status(target, error)); ++n) {
      target = fmt::format("{}{}-{}", path, set_aside_mark, n);
    }
    files::rename_file(fs, path, target);
    paths.push_back(target);
  }
  return paths;
}

FoundCheckpoint find_checkpoint(const std::string& path) {
  std::error_code error;
  if (!stdfs::is_directory(path, error)) return {.checkpoint = Checkpoint::load(path)};
  std::string folder = path;
  while (folder.size() > 1 && folder.back() == '/') folder.pop_back();
  if (stdfs::path(folder).filename() == "checkpoints") folder = files::folder_of(folder);
  FoundCheckpoint found = newest_checkpoint(folder);
  if (found.checkpoint) return found;
  if (found.passed_over.empty()) throw CheckpointError(fmt::format("{}: contains no checkpoint", path));
  throw CheckpointError(fmt::format("{}: contains no valid checkpoint: {}", path, fmt::join(found.passed_over, "; ")));
}

bool is_run_folder(const std::string& folder) {
  std::error_code error;
  return stdfs::exists(folder + "/lock", error) || !checkpoint_steps(folder).empty();
}

void retain_checkpoints(FileSystem* fs, const std::string& run_folder, Index keep, const LoopState& loop) {
  Index kept = 0;
  for (const Index step : checkpoint_steps(run_folder)) {
    const std::string path = checkpoint_path(run_folder, step);
    if (step > loop.step || !is_file(path)) continue;  // not a folder, link or pipe of that name
    if (kept < keep) {
      ++kept;
    } else if (step != loop.best_step) {
      files::remove_file(fs, path);
    }
  }
}

}  // namespace handgrad
