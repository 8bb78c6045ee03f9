#pragma once

#include <fmt/format.h>

#include "handgrad/config/config.h"
#include "handgrad/core/errors.h"

namespace handgrad {

/// Throws ConfigError unless the config is resolved: all counts are at least 1, n_heads divides the width, and
///        n_kv_heads
/// divides n_heads. resolve() sets the values that a config omits.
inline void require_resolved(const ModelConfig& m) {
  const auto at_least_1 = [](const char* key, Index value) {
    if (value < 1) throw ConfigError(fmt::format("model.{}: must be 1 or more in a resolved config, got {}", key, value));
  };
  at_least_1("n_layers", m.n_layers);
  at_least_1("n_heads", m.n_heads);
  at_least_1("n_kv_heads", m.n_kv_heads);
  at_least_1("d_model", m.d_model);
  at_least_1("d_ff", m.d_ff);
  at_least_1("context", m.context);
  if (m.d_model % m.n_heads != 0 || m.n_heads % m.n_kv_heads != 0) {
    throw ConfigError(
        fmt::format("model.n_heads must divide model.d_model, and model.n_kv_heads must divide model.n_heads, got {}, "
                    "{} and {}",
                    m.n_heads, m.d_model, m.n_kv_heads));
  }
}

/// The same; returns the config, for the initialisers of a constructor.
inline const ModelConfig& resolved(const ModelConfig& config) {
  require_resolved(config);
  return config;
}

}  // namespace handgrad
