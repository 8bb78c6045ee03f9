#pragma once

#include <functional>
#include <span>

#include "handgrad/nn/causal_lm.h"
#include "handgrad/text/tokenizer.h"

namespace handgrad {

/// How well a model predicts a text.
struct Evaluation {
  double loss = 0.0;           ///< Nats a token.
  double bits_per_byte = 0.0;  ///< Bits for a byte of the text: comparable between tokenizers.
  Index tokens = 0;            ///< Targets predicted.
  bool complete = true;        ///< False if the watch ended it: the figures are of the part that was read.
  double perplexity() const;   ///< e^loss.
};

/// Called after each batch with the number of windows read and their total; returning false ends the evaluation.
using EvaluationWatch = std::function<bool(Index done, Index total)>;

/// Over all tokens but the first: windows of the model's context one after the other, the last one shorter. Throws
/// DataError for fewer than two tokens.
Evaluation evaluate_all(const CausalLm<float>& model, const Tokenizer& tokenizer, std::span<const TokenId> tokens,
                        Index batch_size, const EvaluationWatch& watch = {});

/// Over windows at the given starts, `batch_size` at a time, on memory of the caller's tape (recording off).
Evaluation evaluate_windows(const CausalLm<float>& model, const Tokenizer& tokenizer, std::span<const TokenId> tokens,
                            std::span<const Index> starts, Index batch_size, Tape<float>& tape,
                            const EvaluationWatch& watch = {});

}  // namespace handgrad
