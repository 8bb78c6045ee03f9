#include "handgrad/core/random.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

namespace handgrad {
namespace {

using Words = std::array<std::uint32_t, 4>;

// Known answers of Random123 (Salmon et al. 2011), philox 4x32-10.
TEST(Philox, gives_the_published_answers) {
  EXPECT_EQ(philox({0, 0, 0, 0}, {0, 0}), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  constexpr std::uint32_t all = 0xffffffff;
  EXPECT_EQ(philox({all, all, all, all}, {all, all}), (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Random, is_a_function) {
  const Random a(7, Stream::dropout, 3), b(7, Stream::dropout, 3);
  for (const std::uint64_t counter : {std::uint64_t{5}, std::uint64_t{0}, std::uint64_t{1} << 40}) {
    EXPECT_EQ(a.words(counter), b.words(counter));
    EXPECT_EQ(a.normal(counter), b.normal(counter));
  }
  std::set<Words> distinct;
  for (const std::uint64_t seed : {std::uint64_t{1}, std::uint64_t{2}, (std::uint64_t{1} << 32) + 1}) {
    for (const Stream stream : {Stream::initial_weights, Stream::dropout, Stream::sampling}) {
      for (const std::uint32_t substream : {0u, 1u}) {
        for (const std::uint64_t counter : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{1} << 32}) {
          distinct.insert(Random(seed, stream, substream).words(counter));
        }
      }
    }
  }
  EXPECT_EQ(distinct.size(), 3u * 3 * 2 * 3);
}

TEST(Random, uniform_numbers_fill_the_unit_interval) {
  const Random random(1, Stream::benchmark);
  double sum = 0, least = 1, most = 0;
  constexpr int n = 100000;
  for (int i = 0; i < n; ++i) {
    const double u = random.uniform(static_cast<std::uint64_t>(i));
    ASSERT_GE(u, 0.0);
    ASSERT_LT(u, 1.0);
    sum += u;
    least = std::min(least, u);
    most = std::max(most, u);
  }
  EXPECT_NEAR(sum / n, 0.5, 5 * std::sqrt(1.0 / 12 / n));
  EXPECT_LT(least, 1e-4);
  EXPECT_GT(most, 1 - 1e-4);
}

TEST(Random, integers_below_n_are_even_handed) {
  const Random random(1, Stream::benchmark);
  std::array<int, 7> counts{};
  for (std::uint64_t i = 0; i < 70000; ++i) ++counts[random.below(i, 7)];
  for (const int count : counts) EXPECT_NEAR(count, 10000, 5 * 93);
  EXPECT_EQ(random.below(0, 1), 0u);
  EXPECT_LT(random.below(3, UINT64_MAX), UINT64_MAX);
}

TEST(Random, normal_numbers_have_the_moments_of_a_normal_distribution) {
  const Random random(1, Stream::benchmark);
  constexpr int n = 200000;
  double moments[5] = {}, mixed = 0;
  for (std::uint64_t i = 0; i < n / 2; ++i) {
    const auto pair = random.normals(i);
    EXPECT_EQ(pair[0], random.normal(i));
    for (const double z : pair) {
      ASSERT_TRUE(std::isfinite(z));
      for (int k = 1; k <= 4; ++k) moments[k] += std::pow(z, k) / n;
    }
    mixed += pair[0] * pair[1] / (n / 2);
  }
  EXPECT_NEAR(mixed, 0.0, 5 / std::sqrt(n / 2.0));
  const double deviation = 1 / std::sqrt(double{n});
  EXPECT_NEAR(moments[1], 0.0, 5 * deviation);
  EXPECT_NEAR(moments[2], 1.0, 5 * std::sqrt(2.0) * deviation);
  EXPECT_NEAR(moments[3], 0.0, 5 * std::sqrt(15.0) * deviation);
  EXPECT_NEAR(moments[4], 3.0, 5 * std::sqrt(96.0) * deviation);
}

}  // namespace
}  // namespace handgrad
