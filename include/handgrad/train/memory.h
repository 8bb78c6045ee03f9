#pragma once

#include <string>

#include "handgrad/config/config.h"
#include "handgrad/core/types.h"

namespace handgrad {

/// An estimate of the memory of a training run in bytes, by purpose. Weights, gradients, moments, tokens and checkpoint
/// are exact; activations are estimated from shapes.
struct MemoryEstimate {
  Index program = 0;      ///< The program and its libraries.
  Index text = 0;         ///< The text while it is read: one byte per byte.
  Index tokens = 0;       ///< Four bytes per token.
  Index states = 0;       ///< Weights, gradients, moments; with log.health_every a copy of the weights.
  Index activations = 0;  ///< Activations of an update on the tape, and logits.
  Index evaluation = 0;   ///< Activations of an evaluation.
  Index checkpoint = 0;   ///< The file, which is assembled in memory before it is written.

  /// The maximum, during a save or at the end of reading the text.
  Index peak() const;
  /// The part that is allocated after the text has been read.
  Index to_come() const { return states + activations + evaluation + checkpoint; }
};

/// The estimate for a resolved config (config/validate.h); each figure is at most a petabyte. Throws ConfigError for a
/// config that is not resolved, RangeError for numbers below 0.
MemoryEstimate estimate_memory(const Config& resolved, Index text_bytes, Index tokens);

/// Call it after reading the text. Throws ResourceError, which names the keys that reduce memory, if the rest of the
/// estimate exceeds the memory that this process can still allocate (core/memory.h) plus `to_be_freed`, the bytes that
/// it will free before.
void check_memory(const MemoryEstimate& estimate, const Config& resolved, Index to_be_freed = 0);

/// An estimate of the memory of an audit in bytes: the model in three scalars, its gradients, and copies to compare.
Index estimate_audit_memory(const ModelConfig& model);

/// Throws ResourceError if this process cannot allocate `needed` more bytes. The message ends with `help`.
void require_memory(Index needed, const std::string& help);

/// The same for reading a text, before it begins: one byte per byte of the text, and four per token, of which there is
/// at most one per byte.
void check_memory_for_text(Index text_bytes);

/// "1234 MB", rounded up.
std::string megabytes(Index bytes);

}  // namespace handgrad
