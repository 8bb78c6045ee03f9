#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "handgrad/config/config.h"

namespace handgrad {

/// A config as read: each value within its range, rules across keys not yet checked (see validate.h).
struct ParsedConfig {
  Config config;
  std::set<std::string> given;  ///< Keys that the file or an override set; the others have their defaults.
};

/// Reads a TOML file. Each override is "key=value", where value is a TOML value, else a string. Overrides replace
/// values of the file, later ones those of earlier ones. Paths become absolute: those of the file relative to its
/// folder, those of overrides to the current folder. Throws ConfigError, one line: where, key, what is expected, what
/// was found.
ParsedConfig load_config(const std::string& path, const std::vector<std::string>& overrides = {});

/// The same from text. Messages contain `source_name` instead of a file; relative paths start from `base_folder`.
ParsedConfig parse_config(std::string_view toml_text, const std::string& source_name, const std::string& base_folder,
                          const std::vector<std::string>& overrides = {});

/// All errors of a config file and its overrides, one line each, of which load_config and validate throw only the
/// first. Rules across keys are checked if every key can be read. Empty: the config is valid.
std::vector<std::string> config_problems(const std::string& path, const std::vector<std::string>& overrides = {});

}  // namespace handgrad
