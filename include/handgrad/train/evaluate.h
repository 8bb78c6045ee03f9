#pragma once

#include <functional>
#include <span>

#include "handgrad/nn/causal_lm.h"
#include "handgrad/text/tokenizer.h"

namespace handgrad {

/// The quality of the predictions of a model on a text.
struct Evaluation {
  double loss = 0.0;           ///< Nats per token.
  double bits_per_byte = 0.0;  ///< Bits per byte of the text; comparable between tokenizers.
  Index tokens = 0;            ///< Number of targets.
  bool complete = true;        ///< False if the watch ended it; the figures are then those of the evaluated part.
  double perplexity() const;   ///< e^loss.
};

/// Called after each batch with the number of evaluated windows and their total. Returning false ends the evaluation.
using EvaluationWatch = std::function<bool(Index done, Index total)>;

/// Evaluates all tokens except the first, in consecutive windows of the context of the model; the last one is shorter.
/// Throws DataError for fewer than two tokens.
Evaluation evaluate_all(const CausalLm<float>& model, const Tokenizer& tokenizer, std::span<const TokenId> tokens,
                        Index batch_size, const EvaluationWatch& watch = {});

/// Evaluates windows at the given starts, `batch_size` at a time, with the memory of `tape` (recording off).
Evaluation evaluate_windows(const CausalLm<float>& model, const Tokenizer& tokenizer, std::span<const TokenId> tokens,
                            std::span<const Index> starts, Index batch_size, Tape<float>& tape,
                            const EvaluationWatch& watch = {});

}  // namespace handgrad
