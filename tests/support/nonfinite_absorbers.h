#pragma once

#include <string>

namespace handgrad::test {

/// The reason why a case of gradient_test.cpp may absorb this value in one of its operands; "" if it may not. This is
/// the complete list; docs/proof.md repeats it.
inline std::string why_absorbed(const std::string& name, double value) {
  const auto starts = [&](const char* prefix) { return name.starts_with(prefix); };
  if (name.find("of_a_slice") != std::string::npos || name == "rms_norm_heads" ||
      name == "rope_of_a_packed_projection") {
    return "the view leaves elements out";
  }
  if (starts("embedding")) return "a row of the table that no token reads";
  if (starts("dropout")) return "a dropped element is selected away, not multiplied by 0";
  if (starts("masked_fill")) return "a masked score is selected away";
  if (name.ends_with("attention_masked")) return "a key that no query sees, or its value";
  if (starts("cross_entropy")) return "a row whose target is ignored is not read";
  if (starts("softmax") && value < 0) return "a score of -infinity has probability 0";
  if (starts("relu") && value < 0) return "relu(-infinity) is 0";
  return "";
}

}  // namespace handgrad::test
