#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "handgrad/core/types.h"

namespace handgrad {

/// How the next token is drawn.
struct SamplingOptions {
  double temperature = 0.8;  ///< Logits are divided by it; 0: the most likely token, the lowest id among equals.
  Index top_k = 0;           ///< Only the k most likely tokens; 0: all.
  double top_p = 1.0;        ///< Then the fewest of these whose probabilities sum to at least p; at least one.
  std::uint64_t seed = 1;
};

/// Throws RangeError (option, range, value).
void validate(const SamplingOptions& options);

namespace generate {

/// A token that may be drawn.
struct Candidate {
  TokenId token;
  double probability;
};

/// The tokens that remain after top-k, then top-p, with probabilities that sum to 1; most likely first, among equals
/// the lower id first. Throws RangeError for empty logits, NonFiniteError for a NaN or +infinity among them. Source:
/// Fan et al. 2018, arXiv:1805.04833 (top-k); Holtzman et al. 2019, arXiv:1904.09751 (top-p).
std::vector<Candidate> candidates(std::span<const float> logits, const SamplingOptions& options);

/// Draws with u in [0, 1): the first token at which the running sum of probabilities exceeds u. Throws RangeError for
/// empty candidates or u outside [0, 1).
TokenId draw(std::span<const Candidate> candidates, double u);

}  // namespace generate

/// Draws token number `n` of a text: a function of logits, options and n.
TokenId sample_token(std::span<const float> logits, const SamplingOptions& options, std::uint64_t n);

}  // namespace handgrad
