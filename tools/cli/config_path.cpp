#include "config_path.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <vector>

#include "command.h"
#include "escape.h"

namespace handgrad::cli {

std::string config_path(const std::string& path) {
  namespace stdfs = std::filesystem;
  std::error_code error;
  if (!stdfs::is_directory(path, error)) return path;
  const std::string inside = path + (path.ends_with('/') ? "" : "/") + "config.toml";
  if (stdfs::is_regular_file(inside, error)) return inside;
  std::vector<std::string> configs;
  for (const auto& entry : stdfs::directory_iterator(path, error)) {
    if (entry.path().extension() == ".toml") configs.push_back(escaped(entry.path().filename().string()));
  }
  std::sort(configs.begin(), configs.end());
  throw UsageError(fmt::format("{}: is a directory without config.toml; name a config file{}", escaped(path),
                               configs.empty() ? "" : fmt::format(", one of {}", fmt::join(configs, ", "))));
}

}  // namespace handgrad::cli
