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
    throw RangeError(fmt::format("temperature: expected a number from 0 to 1e6, got {}", options.temperature));
  }
  if (options.top_k < 0) throw RangeError(fmt::format("top-k: expected 0 (off) or more, got {}", options.top_k));
  if (!(options.top_p >= 0.0 && options.top_p <= 1.0)) {
    throw RangeError(fmt::format("top-p: expected a number from 0 to 1, got {}", options.top_p));
  }
}

std::vector<Candidate> candidates(std::span<const float> logits, const SamplingOptions& options) {
  validate(options);
  if (logits.empty()) throw RangeError("sampling: the logits of at least one token are needed, got none");
  std::vector<Candidate> all;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    const float x = logits[i];
    if (!is_finite(x) && !(x < 0.0f)) {
      throw NonFiniteError(fmt::format("sampling: the logit of token {} is {}", i, x));
    }
    all.push_back({static_cast<TokenId>(i), static_cast<double>(x)});
  }
  // By logit: probabilities follow the same order.
  const auto likelier = [](const Candidate& a, const Candidate& b) {
    return a.probability != b.probability ? a.probability > b.probability : a.token < b.token;
  };
  const Index keep = options.temperature == 0.0 ? 1
                     : options.top_k > 0 && options.top_k < static_cast<Index>(all.size())
                         ? options.top_k
                         : static_cast<Index>(all.size());
  std::partial_sort(all.begin(), all.begin() + keep, all.end(), likelier);
  all.resize(static_cast<std::size_t>(keep));
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
  // With p = 1 all stay, however unlikely.
  const double wanted = options.top_p < 1.0 ? options.top_p * total * (1.0 - 1e-12) : 2.0 * total;
  while (count < all.size() && (count == 0 || reached < wanted)) {
    reached += all[count++].probability;
  }
  all.resize(count);
  for (Candidate& c : all) c.probability /= reached;
  return all;
}

TokenId draw(std::span<const Candidate> candidates, double u) {
  if (candidates.empty()) throw RangeError("sampling: at least one candidate is needed, got none");
  if (!(u >= 0.0 && u < 1.0)) throw RangeError(fmt::format("sampling: u in [0, 1) is needed, got {}", u));
  double sum = 0.0;
  TokenId last = candidates.front().token;
  for (const Candidate& c : candidates) {
    if (c.probability <= 0.0) continue;
    last = c.token;
    sum += c.probability;
    if (sum > u) break;
  }
  return last;  // rounding may leave the sum below u: then the last token that has a probability at all
}

TokenId sample_token(std::span<const float> logits, const SamplingOptions& options, std::uint64_t n) {
  const std::vector<Candidate> left = candidates(logits, options);
  return left.size() == 1 ? left[0].token : draw(left, Random(options.seed, Stream::sampling).uniform(n));
}

}  // namespace handgrad
