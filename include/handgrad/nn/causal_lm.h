#pragma once

#include <optional>
#include <span>
#include <vector>

#include "handgrad/nn/block.h"
#include "handgrad/ops/loss_options.h"

namespace handgrad {

/// Tokens of a batch, (B, T), row by row.
struct TokenBatch {
  std::span<const TokenId> tokens;
  Index batch = 1;
  PositionsRef positions;  ///< (T) or (B, T); empty: 0, 1, ..., counted from the number of tokens in the cache.
};

/// A causal language model: embeddings, blocks, a final norm and a head. The GPT-2 and Llama architectures are
/// configurations of it. Several threads may use one const model.
template <class S>
class CausalLm {
 public:
  /// `config` is resolved and has a vocab_size, else ConfigError is thrown. All parameters are 0 until initialise() or
  /// Checkpoint::restore().
  explicit CausalLm(const ModelConfig& config) : CausalLm(config, true) {}
  /// The number of parameters of a model, without its memory. Throws the errors of the constructor.
  static Index count_parameters(const ModelConfig& config) { return CausalLm(config, false).store().scalar_count(); }

  /// The initialisation of GPT-2: normal with standard deviation 0.02, residual projections divided by sqrt(2
  /// n_layers), gains 1, biases 0. It depends on the seed and on the order of the parameters. Source: Radford et al.
  /// 2019, section 2.3.
  void initialise(std::uint64_t seed);

  /// The output of the last block after the final norm: (B, T, C). Throws ShapeError, RangeError.
  Var<S> hidden(Tape<S>& tape, const TokenBatch& batch, const ForwardOptions<S>& options = {}) const;
  /// Logits of the next token: (B, T, V).
  Var<S> logits(Tape<S>& tape, const TokenBatch& batch, const ForwardOptions<S>& options = {}) const;
  /// The same for the last token of each sequence only: (B, 1, V).
  Var<S> last_logits(Tape<S>& tape, const TokenBatch& batch, const ForwardOptions<S>& options = {}) const;
  /// Mean cross-entropy of the targets, one target per token; a single element.
  Var<S> loss(Tape<S>& tape, const TokenBatch& batch, std::span<const TokenId> targets, LossOptions loss = {},
              const ForwardOptions<S>& options = {}) const;

  /// Allocates the gradients of the store, all 0, and a second one for a tied embedding, whose two uses have separate
  /// sums.
  void allocate_gradients();
  /// Completes the gradients of an update: adds the two sums of a tied embedding. Call it after the last backward pass.
  void finish_gradients() { store_.finish_gradients(); }

  const ModelConfig& config() const { return config_; }
  ParameterStore<S>& store() { return store_; }
  const ParameterStore<S>& store() const { return store_; }

  /// The number of elements of all matrices that are used in products (the head counts once, tables do not). A training
  /// step needs 6 floating-point operations per element and token.
  Index product_elements() const;

 private:
  CausalLm(const ModelConfig& config, bool allocate);
  Var<S> embed(const ForwardContext<S>& context, const TokenBatch& batch) const;
  Var<S> head_weight(Tape<S>& tape) const;

  ModelConfig config_;
  ParameterStore<S> store_;
  ParameterId embedding_ = -1, positions_ = -1, head_ = -1;
  std::vector<Block> blocks_;
  std::optional<Norm> final_norm_;
  std::optional<RopeTable<S>> rope_table_;
  Tensor<S> sinusoids_;
  std::vector<Index> default_positions_;  // 0, 1, 2, ...
};

}  // namespace handgrad
