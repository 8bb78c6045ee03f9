#pragma once

#include <string>

namespace handgrad::cli {

/// The config file that a command's CONFIG argument means: of a run folder its config.toml, else the path itself.
/// Throws UsageError for a folder that holds no config.toml, naming the configs in it.
std::string config_path(const std::string& path);

}  // namespace handgrad::cli
