#include "text/folder_walk.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "handgrad/core/errors.h"

namespace handgrad {
namespace {

namespace fs = std::filesystem;

bool is_text_name(const fs::path& path) {
  std::string extension = path.extension().string();
  for (char& c : extension) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  constexpr std::array<std::string_view, 3> known = {".txt", ".md", ".text"};
  return std::find(known.begin(), known.end(), extension) != known.end();
}

// A run's folder holds texts that its own model has written, if any.
bool is_run(const fs::path& folder) {
  std::error_code error;
  return fs::is_regular_file(folder / "config.toml", error) && fs::is_directory(folder / "checkpoints", error);
}

class Walk {
 public:
  Walk(const fs::path& folder, PassedOver& passed_over) : folder_(folder), passed_over_(passed_over) {}

  std::vector<SourceFile> files() {
    std::error_code error;
    fs::recursive_directory_iterator entry(folder_, error);
    if (error) cannot_read(folder_, error);
    // increment() goes past what it cannot open only by ending the walk: the error names the folder to look in.
    for (; entry != fs::recursive_directory_iterator(); entry.increment(error)) {
      if (!look_at(*entry)) entry.disable_recursion_pending();
    }
    if (error) throw DataError(fmt::format("cannot read all folders below {}: {}", folder_.string(), error.message()));
    // The order of the directory does not matter, and what a link leads to is read under its own name, if it has one
    // here.
    add_all(files_);
    add_all(links_);
    const auto by_bytes = [](const SourceFile& a, const SourceFile& b) { return a.path.string() < b.path.string(); };
    std::sort(found_.begin(), found_.end(), by_bytes);
    return std::move(found_);
  }

 private:
  // Notes an entry; whether to enter it.
  bool look_at(const fs::directory_entry& entry) {
    const fs::path& path = entry.path();
    std::error_code error;
    const fs::file_type type = entry.status(error).type();  // of what a link leads to
    const bool link = entry.is_symlink(error), folder = type == fs::file_type::directory;
    if (path.filename().string().starts_with('.')) {
      ++passed_over_.hidden;
    } else if (folder) {
      passed_over_.links_to_folders += link ? 1 : 0;
      if (link || !is_run(path)) return !link;
      ++passed_over_.runs;
    } else if (!is_text_name(path)) {
      ++passed_over_.other_names;
    } else if (type != fs::file_type::regular) {
      ++passed_over_.not_regular;
    } else if (link) {
      links_.push_back(path);
    } else {
      files_.push_back(path);
    }
    return false;
  }

  // A file may have two names, neither of them a symbolic link: the first in the order of bytes is taken.
  void add_all(std::vector<fs::path>& paths) {
    std::sort(paths.begin(), paths.end(), [](const auto& a, const auto& b) { return a.string() < b.string(); });
    for (const fs::path& path : paths) add(path);
  }

  void add(const fs::path& path) {
    struct stat info {};
    if (::stat(path.c_str(), &info) != 0) cannot_read(path, {errno, std::generic_category()});
    if (!seen_.emplace(info.st_dev, info.st_ino).second) {
      ++passed_over_.same_file;
    } else {
      passed_over_.empty += info.st_size == 0 ? 1 : 0;
      found_.push_back({path, static_cast<std::uintmax_t>(info.st_size)});
    }
  }

  fs::path folder_;
  PassedOver& passed_over_;
  std::vector<SourceFile> found_;
  std::vector<fs::path> files_, links_;
  std::set<std::pair<dev_t, ino_t>> seen_;
};

}  // namespace

void cannot_read(const fs::path& path, const std::error_code& reason) {
  throw DataError(fmt::format("cannot read {}: {}", path.string(), reason.message()));
}

std::uintmax_t file_size_of(const fs::path& path) {
  std::error_code error;
  const std::uintmax_t size = fs::file_size(path, error);
  if (error) cannot_read(path, error);
  return size;
}

std::vector<SourceFile> text_files_below(const fs::path& folder, PassedOver& passed_over) {
  return Walk(folder, passed_over).files();
}

}  // namespace handgrad
