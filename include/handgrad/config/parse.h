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

/// Reads a TOML file. Each override is "key=value", where value is a TOML value, else a string; overrides win over the
/// file, later ones over earlier ones. Paths become absolute: those of the file relative to its folder, those of
/// overrides to the current folder. Throws ConfigError, one line: where, key, what is expected, what was found.
ParsedConfig load_config(const std::string& path, const std::vector<std::string>& overrides = {});

/// The same from text. `source_name` stands for the file in messages; relative paths start from `base_folder`.
ParsedConfig parse_config(std::string_view toml_text, const std::string& source_name, const std::string& base_folder,
                          const std::vector<std::string>& overrides = {});

/// All that is wrong with a config file and its overrides, a line each: what load_config and validate would throw one
/// at a time. Rules across keys are looked at once every key can be read. Empty: the config is accepted.
std::vector<std::string> config_problems(const std::string& path, const std::vector<std::string>& overrides = {});

}  // namespace handgrad
