#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "handgrad/checkpoint/loop_state.h"
#include "handgrad/config/config.h"
#include "handgrad/core/numerics.h"
#include "handgrad/files/file_system.h"
#include "handgrad/io/container_reader.h"
#include "handgrad/nn/causal_lm.h"
#include "handgrad/optim/optimizer.h"
#include "handgrad/text/tokenizer.h"

namespace handgrad {

/// The contents of a checkpoint to be written. Non-owning.
template <class S>
struct CheckpointSource {
  const Config& config;  ///< Resolved.
  const Tokenizer& tokenizer;
  const LoopState& loop;
  const ParameterStore<S>& parameters;
  Optimizer<S>& optimizer;
  std::uint64_t data_fingerprint = 0;  ///< Of the training text.
  Index data_tokens = 0;               ///< Tokens of the text, training and validation.
};

/// Writes a sealed checkpoint, durably:
///   /model/<parameter>, /optimizer/<parameter>/<m, v or velocity>, /tokenizer/code_points, /config (TOML text),
///   attributes of "/loop", "/tokenizer", "/data" and "/" (version, numerics, gemm kernel, instruction set).
/// Throws NonFiniteError, with the name of the tensor, if a weight or moment is not finite.
/// Throws DataError if writing fails; an existing file is then unchanged.
template <class S>
void save_checkpoint(FileSystem* fs, const std::string& path, const CheckpointSource<S>& source);

/// A checkpoint in memory. The seal is checked, config and tokenizer are read; tensors remain in the file's bytes.
class Checkpoint {
 public:
  /// Throws CheckpointError, one line with path and reason.
  static Checkpoint load(const std::string& path);

  const std::string& path() const { return container_.name(); }
  const Config& config() const { return config_; }
  const LoopState& loop() const { return loop_; }
  std::shared_ptr<const Tokenizer> tokenizer() const { return tokenizer_; }
  std::uint64_t data_fingerprint() const { return data_fingerprint_; }
  /// Tokens of the text; 0 in files that do not state it.
  Index data_tokens() const { return data_tokens_; }
  const Container& container() const { return container_; }
  /// The numerics of the stored run. If they differ from this_numerics(), a resumed run has other bits.
  const Numerics& numerics() const { return numerics_; }

  /// A model with the stored config and weights. Throws CheckpointError if tensors are missing, unknown or of another
  /// shape (the message lists all of them), or if a number is not finite.
  template <class S>
  CausalLm<S> model() const;
  /// Restores the weights of an existing model. Throws as above.
  template <class S>
  void restore(ParameterStore<S>& parameters) const;
  /// Restores the state of an optimiser. Throws as above.
  template <class S>
  void restore(const ParameterStore<S>& parameters, Optimizer<S>& optimizer) const;

 private:
  explicit Checkpoint(Container container);

  Container container_;
  Config config_;
  LoopState loop_;
  std::shared_ptr<const Tokenizer> tokenizer_;
  std::uint64_t data_fingerprint_ = 0;
  Index data_tokens_ = 0;
  Numerics numerics_;
};

}  // namespace handgrad
