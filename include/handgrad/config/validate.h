#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "handgrad/config/config.h"

namespace handgrad {

/// Checks every range and the rules across keys (heads divide the width, ...), so that a config made by a program is
/// held to what a file is. Throws ConfigError with the numbers; `source`, if given, opens the message.
void validate(const Config& config, std::string_view source = {});

/// Every rule that the config breaks, as validate() would say it: first ranges, and across keys if all values are
/// within theirs.
std::vector<std::string> broken_rules(const Config& config, std::string_view source = {});

/// The config with what it leaves open filled in: n_kv_heads and d_ff. Throws nothing for a valid config.
Config resolve(Config config);

/// The resolved config of a model for a tokenizer of `vocab_size` tokens; `tokenizer` names it in the message. Throws
/// ConfigError if the config names another vocab_size, or breaks a rule of validate().
Config complete_config(Config config, std::string_view tokenizer, Index vocab_size);

}  // namespace handgrad
