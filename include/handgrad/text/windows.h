#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "handgrad/core/choices.h"
#include "handgrad/core/types.h"

namespace handgrad {

/// Throws RangeError for the first id outside [0, vocab_size), naming index, id and vocabulary size.
void check_token_ids(std::span<const TokenId> tokens, Index vocab_size);

/// What is trained on and what is held back: no token is in both. Borrows its memory.
struct TokenSplit {
  std::span<const TokenId> train;
  std::span<const TokenId> validation;
};

/// The first floor(N (1 - validation_fraction)) tokens for training, the rest for validation.
/// Throws RangeError for a fraction outside [0, 1), and DataError if a part is shorter than context + 1 tokens, naming
/// the part and both numbers.
TokenSplit split_by_fraction(std::span<const TokenId> tokens, double validation_fraction, Index context);

/// Two texts as they are. Throws DataError as split_by_fraction does.
TokenSplit split_as_given(std::span<const TokenId> train, std::span<const TokenId> validation, Index context);

/// A permutation of [0, size) as a function of (seed, epoch), with neither table nor state: a Feistel network over the
/// next power of four, walked until it lands inside. Sources: Luby and Rackoff 1988; Black and Rogaway 2002.
class Permutation {
 public:
  /// Throws RangeError if size < 1 or epoch < 0.
  Permutation(Index size, std::uint64_t seed, Index epoch);

  /// Where `i` goes. Throws RangeError if i is outside [0, size).
  Index operator()(Index i) const;

 private:
  std::uint64_t once(std::uint64_t x) const;

  std::uint64_t size_;
  std::uint64_t seed_;
  std::uint64_t epoch_;
  int half_bits_;
};

/// Windows of T + 1 tokens, T inputs and for each the token after it, as a function of the number of the sample.
///
///   epoch    W = floor((N - 1) / T) windows, at multiples of T, each once per epoch;
///            sample k is window permutation(seed, k div W)(k mod W)
///   random   sample k starts at a random token in [0, N - T)
///
/// Borrows the tokens. Sample numbers are 64-bit and count from 0 through the whole run.
class TokenWindows {
 public:
  /// Throws RangeError if context < 1, and DataError if there are fewer than context + 1 tokens.
  TokenWindows(std::span<const TokenId> tokens, Index context, DataOrder order, std::uint64_t seed);

  Index context() const { return context_; }

  /// How many windows there are to meet: W, or N - T.
  Index count() const { return count_; }

  /// Index of the first token of sample `sample`. Throws RangeError if it is negative.
  Index start(Index sample) const;

  /// Fills inputs and targets, (B, T) each, with the samples [first, first + B); B is inputs.size() / T.
  /// Throws ShapeError if the sizes differ or are no multiple of T, RangeError if first < 0.
  void fill(Index first, std::span<TokenId> inputs, std::span<TokenId> targets) const;

 private:
  std::span<const TokenId> tokens_;
  Index context_;
  Index count_;
  DataOrder order_;
  std::uint64_t seed_;
};

/// Starts of the windows to evaluate on, always the same: `count` of the floor((N - 1) / T) windows at multiples of T,
/// evenly spread from the first on, in order; all of them if count is 0 or larger.
/// Throws RangeError if context < 1 or count < 0, DataError if there are fewer than context + 1 tokens.
std::vector<Index> evaluation_starts(Index n_tokens, Index context, Index count);

/// Fills inputs and targets, (B, T) each, from windows at the given starts, (B).
/// Throws ShapeError if sizes do not fit, RangeError for a window that does not lie within the tokens.
void fill_windows(std::span<const TokenId> tokens, std::span<const Index> starts, Index context,
                  std::span<TokenId> inputs, std::span<TokenId> targets);

}  // namespace handgrad
