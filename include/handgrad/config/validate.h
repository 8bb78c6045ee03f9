#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "handgrad/config/config.h"

namespace handgrad {

/// Checks all ranges and the rules across keys (heads divide the width, ...), also for configs that a program makes.
/// Throws ConfigError with the numbers; `source`, if given, is the start of the message.
void validate(const Config& config, std::string_view source = {});

/// The messages for all rules that the config violates: ranges, and rules across keys if all values are in range.
std::vector<std::string> broken_rules(const Config& config, std::string_view source = {});

/// The config with the values that it omits: n_kv_heads and d_ff. Throws nothing for a valid config.
Config resolve(Config config);

/// The resolved config of a model for a tokenizer of `vocab_size` tokens; `tokenizer` names it in the message. Throws
/// ConfigError if the config has another vocab_size, or violates a rule of validate().
Config complete_config(Config config, std::string_view tokenizer, Index vocab_size);

}  // namespace handgrad
