#pragma once

#include <array>
#include <cstdint>

#include "handgrad/core/types.h"

namespace handgrad {

/// Philox 4x32-10: four random words as a function of a counter and a key, without state.
/// Source: Salmon et al. 2011, Parallel random numbers: as easy as 1, 2, 3 (SC11).
inline std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter, std::array<std::uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t p0 = std::uint64_t{0xD2511F53u} * counter[0];
    const std::uint64_t p1 = std::uint64_t{0xCD9E8D57u} * counter[2];
    counter = {static_cast<std::uint32_t>(p1 >> 32) ^ counter[1] ^ key[0], static_cast<std::uint32_t>(p1),
               static_cast<std::uint32_t>(p0 >> 32) ^ counter[3] ^ key[1], static_cast<std::uint32_t>(p0)};
    key[0] += 0x9E3779B9u;
    key[1] += 0xBB67AE85u;
  }
  return counter;
}

namespace detail {
[[noreturn]] void refuse_empty_range();
}

/// The purpose of a random number. Different streams are independent of each other.
enum class Stream : std::uint32_t { initial_weights = 1, dropout, data_order, sampling, audit, benchmark };

/// Random numbers as a function of (seed, stream, substream, counter), without state: the same arguments give the same
/// number, in any order and on any thread. `substream` separates the users of one stream (a parameter, a dropout site).
class Random {
 public:
  Random(std::uint64_t seed, Stream stream, std::uint32_t substream = 0)
      : key_{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)},
        lane_{static_cast<std::uint32_t>(stream), substream} {}

  /// Four independent words for `counter`.
  std::array<std::uint32_t, 4> words(std::uint64_t counter) const {
    return philox({static_cast<std::uint32_t>(counter), static_cast<std::uint32_t>(counter >> 32), lane_[0], lane_[1]},
                  key_);
  }

  std::uint64_t bits(std::uint64_t counter) const {
    const auto w = words(counter);
    return (std::uint64_t{w[0]} << 32) | w[1];
  }

  /// Uniform in [0, 1), 53 bits.
  double uniform(std::uint64_t counter) const { return static_cast<double>(bits(counter) >> 11) * 0x1p-53; }

  /// Uniform integer in [0, n); the bias is below n / 2^64. Throws RangeError for n = 0.
  std::uint64_t below(std::uint64_t counter, std::uint64_t n) const {
    if (n == 0) detail::refuse_empty_range();
    return static_cast<std::uint64_t>((static_cast<unsigned __int128>(bits(counter)) * n) >> 64);
  }

  /// Standard normal, by Box and Muller (1958).
  double normal(std::uint64_t counter) const { return normals(counter)[0]; }
  /// Two independent standard normals for `counter`.
  std::array<double, 2> normals(std::uint64_t counter) const;

 private:
  std::array<std::uint32_t, 2> key_;
  std::array<std::uint32_t, 2> lane_;
};

}  // namespace handgrad
