#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "handgrad/config/config.h"

namespace handgrad {

/// The config as a TOML file with every key. Reading it back gives the same bits in every locale.
std::string to_toml(const Config& config);

/// Describes keys for a terminal: accepted values, default, meaning, and whether it may change when a run is resumed.
/// `only` is a key ("train.steps"), a table ("train"), a name without its table ("steps"), a name in another program
/// ("max_iters"), or a word in names and meanings; empty: all keys. Throws ConfigError, with the nearest name, if
/// nothing matches.
std::string explain_config(std::string_view only = "");

/// The same as the Markdown page docs/config.md.
std::string explain_config_markdown();

namespace config {

/// The name nearest to a misspelled one. Empty if more than a third of the letters differ, and more than one.
std::string nearest_name(std::string_view misspelled, const std::vector<std::string>& names);

}  // namespace config

}  // namespace handgrad
