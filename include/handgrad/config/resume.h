#pragma once

#include <string>
#include <vector>

#include "handgrad/config/config.h"
#include "handgrad/config/fields.h"

namespace handgrad {

/// A key whose requested value differs from the stored one.
struct ConfigDifference {
  std::string key;
  std::string stored;     ///< As TOML.
  std::string requested;  ///< As TOML.
  config::ResumeClass resume;
};

/// The keys in which two configs differ after resolve(). A vocab_size of 0 equals every other.
std::vector<ConfigDifference> resume_differences(const Config& stored, const Config& requested);

/// Checks that a run with the stored config, after `steps_done` updates, may continue with the requested one. Returns
/// the allowed differences. Throws ConfigError with every refused key and both values.
std::vector<ConfigDifference> check_resume(const Config& stored, const Config& requested, Index steps_done);

}  // namespace handgrad
