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
  PositionsRef positions;  ///< (T) or (B, T); empty: 0, 1, ..., after the tokens that the cache holds.
};

/// A causal language model: embeddings, blocks, a final norm and a head; the GPT-2 shape and the Llama shape are
/// configurations of it. A const model may serve many threads.
template <class S>
class CausalLm {
 public:
  /// For a resolved config with a vocab_size. All parameters are 0 until initialise() or a checkpoint fills them.
  /// Throws ConfigError for one that is not resolved or has no vocab_size.
  explicit CausalLm(const ModelConfig& config) : CausalLm(config, true) {}
  /// Number of parameters of such a model, which is not made. Throws as the constructor does.
  static Index count_parameters(const ModelConfig& config) { return CausalLm(config, false).store().scalar_count(); }

  /// GPT-2's initialisation: normal of deviation 0.02, residual projections divided by sqrt(2 n_layers), norms 1,
  /// biases 0; a function of the seed and the parameters' order. Source: Radford et al. 2019, section 2.3.
  void initialise(std::uint64_t seed);

  /// The last block's output after the final norm: (B, T, C). Throws ShapeError, RangeError.
  Var<S> hidden(Tape<S>& tape, const TokenBatch& batch, const ForwardOptions<S>& options = {}) const;
  /// Scores of the next token: (B, T, V).
  Var<S> logits(Tape<S>& tape, const TokenBatch& batch, const ForwardOptions<S>& options = {}) const;
  /// The same for the last token of each sequence only: (B, 1, V).
  Var<S> last_logits(Tape<S>& tape, const TokenBatch& batch, const ForwardOptions<S>& options = {}) const;
  /// Mean cross-entropy of the targets, one target per token; a single element.
  Var<S> loss(Tape<S>& tape, const TokenBatch& batch, std::span<const TokenId> targets, LossOptions loss = {},
              const ForwardOptions<S>& options = {}) const;

  /// Makes the store's gradients, all 0, and a second one for a tied embedding, whose two uses are summed apart.
  void allocate_gradients();
  /// Completes the gradients of an update, once its last backward pass is done: adds up the uses of a tied embedding.
  void finish_gradients() { store_.finish_gradients(); }

  const ModelConfig& config() const { return config_; }
  ParameterStore<S>& store() { return store_; }
  const ParameterStore<S>& store() const { return store_; }
  /// The token embedding, which is also the head if they are tied.
  ParameterId embedding_parameter() const { return embedding_; }

  /// Elements of the matrices that enter products: the head once, tables never. A training step does 6 floating-point
  /// operations per element and token.
  Index product_elements() const;

 private:
  CausalLm(const ModelConfig& config, bool allocate);
  Var<S> embed(const Context<S>& context, const TokenBatch& batch) const;
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
