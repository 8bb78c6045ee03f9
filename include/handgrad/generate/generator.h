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

/// Continues one sequence, token by token, with a key/value cache. When the context is full it drops the first half,
/// recomputes the cache of the rest, and continues. The model is not owned; several generators may share it.
class Generator {
 public:
  explicit Generator(const CausalLm<float>& model, const SamplingOptions& options = {});

  /// Starts a new text with the tokens to continue, and resets all state. Reads the last tokens that fit the context,
  /// and returns the number of earlier ones. Throws DataError if `tokens` is empty, RangeError for an id outside the
  /// vocabulary.
  Index prompt(std::span<const TokenId> tokens);
  /// Draws the next token. Throws NonFiniteError if logits are not finite.
  TokenId next();
  /// Is the context full? Then next() drops its first half.
  bool context_is_full() const { return std::ssize(window_) >= model_.config().context; }
  /// Logits of the next token, (V).
  std::span<const float> logits() const { return logits_; }

 private:
  void feed(std::span<const TokenId> tokens);

  const CausalLm<float>& model_;
  SamplingOptions options_;
  Tape<float> tape_{false};
  KvCache<float> cache_;
  std::vector<TokenId> window_;  // the tokens in the cache
  std::vector<float> logits_;
  std::uint64_t drawn_ = 0;
};

/// The prompt if none is given: a line break, or the first token of a vocabulary without one.
std::string default_prompt(const Tokenizer& tokenizer);

struct TextOptions {
  SamplingOptions sampling;
  Index tokens = 200;            ///< Largest number of tokens.
  std::string stop;              ///< End before this text; empty: never.
  bool stop_at_context = false;  ///< End when the context is full, instead of dropping its first half.
};

/// Why a text ended.
enum class TextEnd {
  tokens,        ///< TextOptions::tokens were drawn.
  stop_text,     ///< TextOptions::stop was generated.
  context_full,  ///< The context is full, and TextOptions::stop_at_context is set.
  sink           ///< The sink returned false.
};

/// The result of generate_text.
struct TextReport {
  Index tokens = 0;                 ///< Tokens drawn; 0 if the prompt fills the context and stop_at_context is set.
  Index prompt_tokens = 0;          ///< Tokens of the whole prompt.
  Index prompt_tokens_cropped = 0;  ///< Tokens at its start that did not fit the context.
  TextEnd end = TextEnd::tokens;
};

/// Continues `prompt` and passes pieces of text to `sink` as they are generated: whole characters only, and no part of
/// the stop string. Ends early if `sink` returns false. Throws DataError for an empty prompt or one that the tokenizer
/// cannot encode, RangeError for a negative number of tokens or a tokenizer that does not match the model, Error for an
/// empty sink.
TextReport generate_text(const CausalLm<float>& model, const Tokenizer& tokenizer, const std::string& prompt,
                         const TextOptions& options, const std::function<bool(std::string_view)>& sink);

}  // namespace handgrad
