#pragma once

#include <string>
#include <vector>

#include "handgrad/config/config.h"
#include "handgrad/config/fields.h"

namespace handgrad {

/// A key that a resumed run asks to be other than it was.
struct ConfigDifference {
  std::string key;
  std::string stored;     ///< As TOML.
  std::string requested;  ///< As TOML.
  config::ResumeClass resume;
};

/// Keys in which two configs differ once resolved. A vocab_size of 0 (the tokenizer's) differs from none.
std::vector<ConfigDifference> resume_differences(const Config& stored, const Config& requested);

/// Checks that a run stored under one config after `steps_done` updates may go on under another; returns the allowed
/// differences. Throws ConfigError with every refused key and both values.
std::vector<ConfigDifference> check_resume(const Config& stored, const Config& requested, Index steps_done);

}  // namespace handgrad
