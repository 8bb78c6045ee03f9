#include "handgrad/text/windows.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <string_view>

#include "handgrad/core/errors.h"
#include "handgrad/core/random.h"

namespace handgrad {
namespace {

constexpr int feistel_rounds = 6;

void check_context(Index context) {
  if (context < 1) throw RangeError(fmt::format("context must be at least 1, got {}", context));
}

// n_tokens < context + 1, without the sum, which could overflow.
void check_length(std::string_view part, Index n_tokens, Index context) {
  check_context(context);
  if (n_tokens <= context) {
    throw DataError(
        fmt::format("{} too short: it has {} tokens, but a context of {} needs at least one more than that; use a "
                    "longer text or a smaller context",
                    part, n_tokens, context));
  }
}

void copy_window(std::span<const TokenId> tokens, Index start, Index context, TokenId* inputs, TokenId* targets) {
  const TokenId* from = tokens.data() + start;
  std::copy_n(from, context, inputs);
  std::copy_n(from + 1, context, targets);
}

// Returns B, the number of windows in the buffers.
Index check_buffers(std::span<const TokenId> inputs, std::span<const TokenId> targets, Index context) {
  if (inputs.size() != targets.size() || std::ssize(inputs) % context != 0) {
    throw ShapeError(
        fmt::format("windows: the buffers must have the same size, a multiple of the context {}, got {} and {}",
                    context, inputs.size(), targets.size()));
  }
  return std::ssize(inputs) / context;
}

}  // namespace

TokenSplit split_by_fraction(std::span<const TokenId> tokens, double validation_fraction, Index context) {
  if (!(validation_fraction >= 0.0 && validation_fraction < 1.0)) {
    throw RangeError(fmt::format("validation fraction must be in [0, 1), got {}", validation_fraction));
  }
  // The small number compensates rounding: for fractions like 0.1 the product may be just below the intended integer.
  const double wanted = std::floor(static_cast<double>(tokens.size()) * (1.0 - validation_fraction) + 1e-6);
  const std::size_t train = std::min(tokens.size(), static_cast<std::size_t>(wanted));
  return split_as_given(tokens.first(train), tokens.subspan(train), context);
}

TokenSplit split_as_given(std::span<const TokenId> train, std::span<const TokenId> validation, Index context) {
  check_length("training part", std::ssize(train), context);
  check_length("validation part", std::ssize(validation), context);
  return {train, validation};
}

Permutation::Permutation(Index size, std::uint64_t seed, Index epoch)
    : size_(static_cast<std::uint64_t>(size)), seed_(seed), epoch_(static_cast<std::uint64_t>(epoch)), half_bits_(0) {
  if (size < 1 || epoch < 0) {
    throw RangeError(
        fmt::format("permutation: size must be at least 1 and epoch at least 0, got {} and {}", size, epoch));
  }
  half_bits_ = (static_cast<int>(std::bit_width(size_ - 1)) + 1) / 2;
}

// x = (left, right) -> (right, left ^ F(right)) is invertible for every F.
std::uint64_t Permutation::once(std::uint64_t x) const {
  const std::uint64_t mask = (std::uint64_t{1} << half_bits_) - 1;
  const Random random(seed_, Stream::data_order, static_cast<std::uint32_t>(epoch_));
  std::uint64_t left = x >> half_bits_;
  std::uint64_t right = x & mask;
  for (std::uint64_t round = 0; round < feistel_rounds; ++round) {
    // The lower 32 bits hold half of x; above them are the round and the bits of the epoch that the substream lacks.
    const std::uint64_t counter = right | (round << 32) | ((epoch_ >> 32) << 35);
    const std::uint64_t mixed = left ^ (random.bits(counter) & mask);
    left = right;
    right = mixed;
  }
  return (left << half_bits_) | right;
}

Index Permutation::operator()(Index i) const {
  if (i < 0 || static_cast<std::uint64_t>(i) >= size_) {
    throw RangeError(fmt::format("permutation: {} is outside [0, {})", i, size_));
  }
  // Following the cycle of i ends inside [0, size), at the latest at i itself; on average after fewer than four steps.
  auto x = static_cast<std::uint64_t>(i);
  do x = once(x);
  while (x >= size_);
  return static_cast<Index>(x);
}

TokenWindows::TokenWindows(std::span<const TokenId> tokens, Index context, DataOrder order, std::uint64_t seed)
    : tokens_(tokens), context_(context), count_(0), order_(order), seed_(seed) {
  check_length("text", std::ssize(tokens), context);
  count_ = order == DataOrder::epoch ? (std::ssize(tokens) - 1) / context : std::ssize(tokens) - context;
}

Index TokenWindows::start(Index sample) const {
  if (sample < 0) throw RangeError(fmt::format("sample number must be at least 0, got {}", sample));
  if (order_ == DataOrder::epoch) {
    return Permutation(count_, seed_, sample / count_)(sample % count_) * context_;
  }
  const Random random(seed_, Stream::data_order);
  return static_cast<Index>(random.below(sample, count_));
}

void TokenWindows::fill(Index first, std::span<TokenId> inputs, std::span<TokenId> targets) const {
  const Index batch = check_buffers(inputs, targets, context_);
  for (Index b = 0; b < batch; ++b) {
    copy_window(tokens_, start(first + b), context_, inputs.data() + b * context_, targets.data() + b * context_);
  }
}

std::vector<Index> evaluation_starts(Index n_tokens, Index context, Index count) {
  check_length("text to evaluate", n_tokens, context);
  if (count < 0) throw RangeError(fmt::format("number of windows must be at least 0, got {}", count));
  const Index all = (n_tokens - 1) / context;
  const Index chosen = count == 0 ? all : std::min(count, all);
  std::vector<Index> starts;
  starts.reserve(chosen);
  for (Index i = 0; i < chosen; ++i) {
    const auto window = static_cast<Index>(static_cast<__int128>(i) * all / chosen);
    starts.push_back(window * context);
  }
  return starts;
}

void fill_windows(std::span<const TokenId> tokens, std::span<const Index> starts, Index context,
                  std::span<TokenId> inputs, std::span<TokenId> targets) {
  check_context(context);
  const Index batch = check_buffers(inputs, targets, context);
  if (batch != std::ssize(starts)) {
    throw ShapeError(
        fmt::format("windows: the buffers must have one window per start, got {} and {}", batch, starts.size()));
  }
  for (Index b = 0; b < batch; ++b) {
    const Index start = starts[b];
    if (start < 0 || start >= std::ssize(tokens) - context) {
      throw RangeError(fmt::format("windows: a window of {} tokens and their targets at {} is not within the {} tokens",
                                   context, start, tokens.size()));
    }
    copy_window(tokens, start, context, inputs.data() + b * context, targets.data() + b * context);
  }
}

}  // namespace handgrad
