#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "handgrad/generate/sampling.h"
#include "handgrad/nn/causal_lm.h"
#include "handgrad/nn/kv_cache.h"
#include "handgrad/text/tokenizer.h"

namespace handgrad {

/// Continues one sequence, token by token, with a key/value cache. At the end of the context it forgets all but the
/// last half, encodes that again, and goes on. The model is borrowed, and may serve other generators at the same time.
class Generator {
 public:
  explicit Generator(const CausalLm<float>& model, const SamplingOptions& options = {});

  /// Begins a new text with the tokens to continue, as a new Generator would. Only the last context's worth is read;
  /// returns the number of tokens left out before it. Throws DataError if there are none, RangeError for an id outside
  /// the vocabulary.
  Index prompt(std::span<const TokenId> tokens);
  /// Draws the next token. Throws NonFiniteError if the model's scores are not finite.
  TokenId next();
  /// True if the context is full: next() would have to forget.
  bool context_is_full() const { return static_cast<Index>(window_.size()) >= model_.config().context; }
  /// Scores of the next token, (V).
  std::span<const float> logits() const { return logits_; }

 private:
  void feed(std::span<const TokenId> tokens);

  const CausalLm<float>& model_;
  SamplingOptions options_;
  Tape<float> tape_{false};
  KvCache<float> cache_;
  std::vector<TokenId> window_;  // what the cache holds
  std::vector<float> logits_;
  std::uint64_t drawn_ = 0;
};

/// What to begin with when nobody says: a line break, or the first token of a vocabulary that has none.
std::string default_prompt(const Tokenizer& tokenizer);

struct TextOptions {
  SamplingOptions sampling;
  Index tokens = 200;            ///< At most so many.
  std::string stop;              ///< Ends before this text; empty: never.
  bool stop_at_context = false;  ///< End when the context is full, instead of forgetting.
};

/// Why a text ended.
enum class TextEnd {
  tokens,        ///< TextOptions::tokens were drawn.
  stop_text,     ///< TextOptions::stop came next.
  context_full,  ///< The context is full, and TextOptions::stop_at_context is set.
  sink           ///< The sink returned false.
};

/// What generate_text did.
struct TextReport {
  Index tokens = 0;                 ///< Tokens drawn. With a context that the prompt fills, stop_at_context leaves 0.
  Index prompt_tokens = 0;          ///< Tokens of the whole prompt.
  Index prompt_tokens_cropped = 0;  ///< Its first tokens that were not read, because it is longer than the context.
  TextEnd end = TextEnd::tokens;
};

/// Continues `prompt`, handing pieces of text to `sink` as they come: whole characters only, and never a part of the
/// stop string. Ends early if `sink` returns false. Throws DataError for an empty prompt or one that the tokenizer
/// cannot encode, RangeError for a negative number of tokens or a tokenizer that is not the model's, Error for an empty
/// sink.
TextReport generate_text(const CausalLm<float>& model, const Tokenizer& tokenizer, const std::string& prompt,
                         const TextOptions& options, const std::function<bool(std::string_view)>& sink);

}  // namespace handgrad
