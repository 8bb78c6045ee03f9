#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "handgrad/core/choices.h"
#include "handgrad/core/types.h"

namespace handgrad {

/// The training and the validation part of a text; no token is in both. Non-owning.
struct TokenSplit {
  std::span<const TokenId> train;
  std::span<const TokenId> validation;
};

/// The first floor(N (1 - validation_fraction)) tokens for training, the rest for validation.
/// Throws RangeError for a fraction outside [0, 1), and DataError if a part is shorter than context + 1 tokens.
TokenSplit split_by_fraction(std::span<const TokenId> tokens, double validation_fraction, Index context);

/// Two separate texts as the two parts. Throws DataError as split_by_fraction does.
TokenSplit split_as_given(std::span<const TokenId> train, std::span<const TokenId> validation, Index context);

/// A permutation of [0, size) as a function of (seed, epoch), without table or state: a Feistel network over the next
/// power of four, applied repeatedly until the result is inside. Sources: Luby and Rackoff 1988; Black and Rogaway
/// 2002.
class Permutation {
 public:
  /// Throws RangeError if size < 1 or epoch < 0.
  Permutation(Index size, std::uint64_t seed, Index epoch);

  /// The image of `i`. Throws RangeError if i is outside [0, size).
  Index operator()(Index i) const;

 private:
  std::uint64_t once(std::uint64_t x) const;

  std::uint64_t size_;
  std::uint64_t seed_;
  std::uint64_t epoch_;
  int half_bits_;
};

/// Training windows of T + 1 tokens (T inputs and the token after each) as a function of the sample number.
///
///   epoch    W = floor((N - 1) / T) windows, at multiples of T, each once per epoch;
///            sample k is window permutation(seed, k div W)(k mod W)
///   random   sample k starts at a random token in [0, N - T)
///
/// Non-owning. Sample numbers are 64-bit and count from 0 through the whole run.
class TokenWindows {
 public:
  /// Throws RangeError if context < 1, and DataError if there are fewer than context + 1 tokens.
  TokenWindows(std::span<const TokenId> tokens, Index context, DataOrder order, std::uint64_t seed);

  Index context() const { return context_; }

  /// The number of different windows: W, or N - T.
  Index count() const { return count_; }

  /// The index of the first token of a sample. Throws RangeError if `sample` is negative.
  Index start(Index sample) const;

  /// Fills inputs and targets, (B, T) each, with the samples [first, first + B); B is inputs.size() / T.
  /// Throws ShapeError if the sizes differ or are not multiples of T, RangeError if first < 0.
  void fill(Index first, std::span<TokenId> inputs, std::span<TokenId> targets) const;

 private:
  std::span<const TokenId> tokens_;
  Index context_;
  Index count_;
  DataOrder order_;
  std::uint64_t seed_;
};

/// The starts of the windows for an evaluation, always the same: `count` of the floor((N - 1) / T) windows at multiples
/// of T, evenly spread, in order, from the first; all of them if count is 0 or larger than their number. Throws
/// RangeError if context < 1 or count < 0, DataError if there are fewer than context + 1 tokens.
std::vector<Index> evaluation_starts(Index n_tokens, Index context, Index count);

/// Fills inputs and targets, (B, T) each, from windows at the given starts, (B).
/// Throws ShapeError if the sizes do not match, RangeError for a window that is not within the tokens.
void fill_windows(std::span<const TokenId> tokens, std::span<const Index> starts, Index context,
                  std::span<TokenId> inputs, std::span<TokenId> targets);

}  // namespace handgrad
