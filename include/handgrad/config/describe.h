#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "handgrad/config/config.h"

namespace handgrad {

/// The config as a TOML file with every key. Reading it back gives the same config to the bit, in every locale.
std::string to_toml(const Config& config);

/// Every key with what it takes, its default, its meaning and what a resumed run may do to it, for a terminal. `only`:
/// a key ("train.steps"), a table ("train"), a key's name without its table ("steps"), another program's name for it
/// ("max_iters"), or a word of names and meanings; empty: all. Throws ConfigError, with the nearest name, if nothing
/// matches.
std::string explain_config(std::string_view only = "");

/// The same as a page in Markdown: docs/config.md.
std::string explain_config_markdown();

/// The name that is nearest to a misspelled one: at most a third of its letters (and at least one) differ. Empty if no
/// name is near.
std::string nearest_name(std::string_view misspelled, const std::vector<std::string>& names);

}  // namespace handgrad
