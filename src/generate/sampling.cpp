#include "handgrad/generate/sampling.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/math.h"
#include "handgrad/core/errors.h"
#include "handgrad/core/random.h"

namespace handgrad {

void validate(const SamplingOptions& options) {
  if (!(options.temperature >= 0.0 && options.temperature <= 1e6)) {
    throw RangeError(fmt::format("temperature: must be from 0 to 1e6, got {}", options.temperature));
  }
  if (options.top_k < 0) throw RangeError(fmt::format("top-k: must be at least 0 (0: off), got {}", options.top_k));
  if (!(options.top_p >= 0.0 && options.top_p <= 1.0)) {
    throw RangeError(fmt::format("top-p: must be from 0 to 1, got {}", options.top_p));
  }
}

namespace generate {
namespace {

// All tokens, with the logit in the place of the probability.
std::vector<Candidate> checked(std::span<const float> logits) {
  if (logits.empty()) throw RangeError("sampling: the logits must not be empty");
  std::vector<Candidate> all;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    const float x = logits[i];
    if (!is_finite(x) && !(x < 0.0f)) {
      throw NonFiniteError(fmt::format("sampling: the logit of token {} is {}", i, x));
    }
    all.push_back({static_cast<TokenId>(i), static_cast<double>(x)});
  }
  return all;
}

// Keeps the `count` most likely tokens, sorted by logit, which is the order of the probabilities.
void keep_most_likely(std::vector<Candidate>& all, Index count) {
  const auto likelier = [](const Candidate& a, const Candidate& b) {
    return a.probability != b.probability ? a.probability > b.probability : a.token < b.token;
  };
  std::partial_sort(all.begin(), all.begin() + count, all.end(), likelier);
  all.resize(count);
}

}  // namespace

std::vector<Candidate> candidates(std::span<const float> logits, const SamplingOptions& options) {
  validate(options);
  std::vector<Candidate> all = checked(logits);
  const Index top_k = options.top_k > 0 ? std::min(options.top_k, std::ssize(all)) : std::ssize(all);
  keep_most_likely(all, options.temperature == 0.0 ? 1 : top_k);
  const double largest = all[0].probability;
  if (largest == -std::numeric_limits<double>::infinity()) {
    throw NonFiniteError("sampling: every logit is -infinity");
  }
  if (options.temperature == 0.0) return {{all[0].token, 1.0}};

  double total = 0.0;
  for (Candidate& c : all) {
    c.probability = std::exp((c.probability - largest) / options.temperature);
    total += c.probability;
  }
  double reached = 0.0;
  std::size_t count = 0;
  // p = 1 keeps all tokens, including the most unlikely ones.
  const double wanted = options.top_p < 1.0 ? options.top_p * total * (1.0 - 1e-12) : 2.0 * total;
  while (count < all.size() && (count == 0 || reached < wanted)) {
    reached += all[count++].probability;
  }
  all.resize(count);
  for (Candidate& c : all) c.probability /= reached;
  return all;
}

TokenId draw(std::span<const Candidate> candidates, double u) {
  if (candidates.empty()) throw RangeError("sampling: the candidates must not be empty");
  if (!(u >= 0.0 && u < 1.0)) throw RangeError(fmt::format("sampling: u must be in [0, 1), got {}", u));
  double sum = 0.0;
  TokenId last = candidates.front().token;
  for (const Candidate& c : candidates) {
    if (c.probability <= 0.0) continue;
    last = c.token;
    sum += c.probability;
    if (sum > u) break;
  }
  return last;  // rounding may leave the sum below u: the last token with a probability above 0
}

}  // namespace generate

TokenId sample_token(std::span<const float> logits, const SamplingOptions& options, std::uint64_t n) {
  const std::vector<generate::Candidate> left = generate::candidates(logits, options);
  return left.size() == 1 ? left[0].token : generate::draw(left, Random(options.seed, Stream::sampling).uniform(n));
}

}  // namespace handgrad
