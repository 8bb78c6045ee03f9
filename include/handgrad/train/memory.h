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
  /// What is still to be taken once the text has been read.
  Index to_come() const { return states + activations + evaluation + checkpoint; }
};

/// For a config that is resolved (config/validate.h). Figures beyond a petabyte are held there. Throws ConfigError for
/// a config that is not resolved, RangeError for numbers below 0.
MemoryEstimate estimate_memory(const Config& resolved, Index text_bytes, Index tokens);

/// For a program that has read its text: throws ResourceError if what is still to come is more than this process may
/// take (core/memory.h), naming the keys that help. `to_be_freed`: bytes that it holds now and gives back before.
void check_memory(const MemoryEstimate& estimate, const Config& resolved, Index to_be_freed = 0);

/// Bytes that an audit of a model takes, about: the model in three scalars, its gradients, and copies to compare.
Index estimate_audit_memory(const ModelConfig& model);

/// Throws ResourceError if `needed` more bytes are more than this process may take. `help` says what takes less.
void require_memory(Index needed, const std::string& help);

/// The same for the reading of a text, before it begins: a byte per byte for the text, four for each token, and a token
/// takes one byte at least.
void check_memory_for_text(Index text_bytes);

/// "1234 MB", rounded up.
std::string megabytes(Index bytes);

}  // namespace handgrad
