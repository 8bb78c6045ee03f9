#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "handgrad/checkpoint/loop_state.h"
#include "handgrad/config/config.h"
#include "handgrad/core/gemm.h"
#include "handgrad/files/file_system.h"
#include "handgrad/io/container_reader.h"
#include "handgrad/nn/causal_lm.h"
#include "handgrad/optim/optimizer.h"
#include "handgrad/text/tokenizer.h"

namespace handgrad {

/// What goes into a checkpoint. Borrows everything.
template <class S>
struct CheckpointSource {
  const Config& config;  ///< Resolved.
  const Tokenizer& tokenizer;
  const LoopState& loop;
  const ParameterStore<S>& parameters;
  Optimizer<S>& optimizer;
  std::uint64_t data_fingerprint = 0;  ///< Of the text that is trained on.
  Index data_tokens = 0;               ///< Its tokens, training and validation.
};

/// Writes a sealed checkpoint, durably:
///   /model/<parameter>, /optimizer/<parameter>/<m, v or velocity>, /tokenizer/code_points, /config (TOML text),
///   attributes of "/loop", "/tokenizer", "/data" and "/" (version, numerics, gemm kernel, instruction set).
/// Throws NonFiniteError, naming the tensor, if a weight or moment is not finite: such a state is never stored.
/// Throws DataError if the disk says no; the file that stood there is then as it was.
template <class S>
void save_checkpoint(FileSystem* fs, const std::string& path, const CheckpointSource<S>& source);

/// A checkpoint in memory: seal checked, config and tokenizer read, tensors still in the file's bytes.
class Checkpoint {
 public:
  /// Throws CheckpointError, one line with path and reason.
  static Checkpoint load(const std::string& path);

  const std::string& path() const { return container_.name(); }
  const Config& config() const { return config_; }
  const LoopState& loop() const { return loop_; }
  std::shared_ptr<const Tokenizer> tokenizer() const { return tokenizer_; }
  std::uint64_t data_fingerprint() const { return data_fingerprint_; }
  /// Tokens of the text; 0 in files that do not say.
  Index data_tokens() const { return data_tokens_; }
  const Container& container() const { return container_; }
  /// What computed the stored run. Where it differs from this_numerics(), a resumed run has other bits.
  const Numerics& numerics() const { return numerics_; }

  /// A model of the stored config with the stored weights. Throws CheckpointError if tensors are missing, unknown or of
  /// another shape (all of them named), or hold a number that is not finite.
  template <class S>
  CausalLm<S> model() const;
  /// The same into a model that exists.
  template <class S>
  void restore(ParameterStore<S>& parameters) const;
  /// The optimiser's state. Throws CheckpointError as above.
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
