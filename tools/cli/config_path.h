#pragma once

#include <string>

namespace handgrad::cli {

/// The config file that a CONFIG argument refers to: DIR/config.toml for a folder, else the path itself. Throws
/// UsageError for a folder without config.toml, with the names of the configs in it.
std::string config_path(const std::string& path);

}  // namespace handgrad::cli
