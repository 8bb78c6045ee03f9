#pragma once

#include <string>

#include "handgrad/config/config.h"
#include "handgrad/core/types.h"

namespace handgrad {

/// Bytes that a training run takes, about, by what they are for. Weights, gradients, moments, tokens and checkpoint are
/// counted; activations are estimated by shape.
struct MemoryEstimate {
  Index program = 0;      ///< The program and its libraries.
  Index text = 0;         ///< The text itself while it is read: one byte per byte.
  Index tokens = 0;       ///< Four bytes per token, kept.
  Index states = 0;       ///< Weights, gradients, moments; with log.health_every a copy of the weights.
  Index activations = 0;  ///< What the tape keeps for an update, and the logits.
  Index evaluation = 0;   ///< What an evaluation keeps.
  Index checkpoint = 0;   ///< The file, which is made in memory before it is written.

  /// At the worst moment: a save, or the end of reading the text.
  Index peak() const;
  /// The same once the text has been read.
  Index training_peak() const;
};

/// For a config that is resolved (config/validate.h). Figures beyond a petabyte are held there. Throws ConfigError for
/// a config that is not resolved, RangeError for numbers below 0.
MemoryEstimate estimate_memory(const Config& resolved, Index text_bytes, Index tokens);

/// Throws ResourceError if training takes more than this process may take (core/memory.h), naming the keys that help.
/// Call once the text has been read. `held_bytes` of the estimate are in memory already: the tokens, and the checkpoint
/// that the run goes on from.
void check_memory(const MemoryEstimate& estimate, const Config& resolved, Index held_bytes = 0);

/// Bytes that an audit of a model takes, about: the model in three scalars, its gradients, and copies to compare.
Index estimate_audit_memory(const ModelConfig& model);

/// Throws ResourceError if `needed` bytes, `held` of which are in memory already, are more than this process may take.
/// `help` says what takes less.
void require_memory(Index needed, const std::string& help, Index held = 0);

/// The same for the reading of a text, before it begins: a byte per byte for the text, four for each token, and a token
/// takes one byte at least.
void check_memory_for_text(Index text_bytes);

/// "1234 MB", rounded up.
std::string megabytes(Index bytes);

}  // namespace handgrad
