#include "core/math.h"

#include <gtest/gtest.h>

#include <limits>

#include "core/lanes.h"

namespace handgrad {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float nan = std::numeric_limits<float>::quiet_NaN();

// Floats in ascending order as consecutive integers.
std::int64_t ordinal(float x) {
  const auto bits = std::bit_cast<std::int32_t>(x);
  return bits < 0 ? -static_cast<std::int64_t>(bits & 0x7fffffff) : bits;
}
float from_ordinal(std::int64_t i) {
  return i < 0 ? -std::bit_cast<float>(static_cast<std::int32_t>(-i))
               : std::bit_cast<float>(static_cast<std::int32_t>(i));
}

// |y - exact| in units of the last place of a float of that size.
double error_in_ulp(float y, double exact) {
  const double ulp = std::ldexp(1.0, std::ilogb(exact) - 23);
  return std::abs(static_cast<double>(y) - exact) / ulp;
}

TEST(Exp, of_a_float_is_within_two_units_in_the_last_place) {
  double worst = 0;
  float at = 0;
  for (std::int64_t i = ordinal(-87.3f); i <= ordinal(88.72f); i += 997) {
    const float x = from_ordinal(i);
    const double error = error_in_ulp(exp_of(x), std::exp(static_cast<double>(x)));
    if (error > worst) worst = error, at = x;
  }
  EXPECT_LE(worst, 2.0) << "at " << at;
  RecordProperty("worst_ulp", std::to_string(worst));
}

TEST(Exp, of_a_float_is_monotone) {  // pairs of neighbouring floats over the whole range
  float before = 0;
  for (std::int64_t i = ordinal(-87.33654f); i <= ordinal(88.7228f); i += 499) {
    const float y = exp_of(from_ordinal(i)), next = exp_of(from_ordinal(i + 1));
    ASSERT_GE(y, before) << from_ordinal(i);
    ASSERT_GE(next, y) << from_ordinal(i);
    before = next;
  }
}

TEST(Exp, of_a_float_at_the_ends_of_its_range) {
  EXPECT_EQ(exp_of(0.0f), 1.0f);
  EXPECT_EQ(exp_of(-0.0f), 1.0f);
  EXPECT_EQ(exp_of(-infinity), 0.0f);
  EXPECT_EQ(exp_of(-88.0f), 0.0f);
  EXPECT_EQ(exp_of(-3e38f), 0.0f);
  EXPECT_EQ(exp_of(infinity), infinity);
  EXPECT_EQ(exp_of(88.73f), infinity);
  EXPECT_EQ(exp_of(3e38f), infinity);
  EXPECT_LT(exp_of(88.72f), infinity);
  EXPECT_GT(exp_of(-87.336f), 0.0f);
  EXPECT_TRUE(std::isnan(exp_of(nan)));
}

TEST(NormalCdf, in_double_is_erfc) {
  for (double x = -37.0; x <= 37.0; x += 0.00371) {
    const double exact = 0.5 * std::erfc(-x / std::numbers::sqrt2);
    const double y = normal_cdf(x);
    ASSERT_NEAR(y, exact, 1e-15) << x;
    // exp(-x^2/2) magnifies the rounding of its exponent
    ASSERT_NEAR(y / exact, 1.0, 4e-16 * (4.0 + x * x)) << x;
  }
  EXPECT_EQ(normal_cdf(0.0), 0.5);
  EXPECT_EQ(normal_cdf(50.0), 1.0);
  EXPECT_EQ(normal_cdf(-50.0), 0.0);
  EXPECT_TRUE(std::isnan(normal_cdf(std::numeric_limits<double>::quiet_NaN())));
}

TEST(NormalCdf, in_float_follows_double) {
  for (float x = -13.0f; x <= 13.0f; x += 0.000937f) {
    const double exact = normal_cdf(static_cast<double>(x));
    const double y = normal_cdf(x);
    ASSERT_NEAR(y, exact, 2e-7) << x;
    if (x > -12.5f) {
      ASSERT_NEAR(y / exact, 1.0, 5e-7 + 2.5e-7 * static_cast<double>(x * x) / 2) << x;
    }
  }
  EXPECT_EQ(normal_cdf(100.0f), 1.0f);
  EXPECT_EQ(normal_cdf(-100.0f), 0.0f);
  EXPECT_EQ(normal_cdf(infinity), 1.0f);
  EXPECT_EQ(normal_cdf(-infinity), 0.0f);
  EXPECT_TRUE(std::isnan(normal_cdf(nan)));
}

TEST(NormalCdf, of_complex_numbers_carries_the_density) {
  for (double x = -6.0; x <= 6.0; x += 0.0173) {
    const auto y = normal_cdf(std::complex<double>(x, 1e-30));
    ASSERT_NEAR(y.real(), normal_cdf(x), 1e-16);
    ASSERT_NEAR(y.imag() / 1e-30, normal_density(x), 1e-14) << x;
  }
}

TEST(Leaves, in_float_follow_double) {
  for (float x = -30.0f; x <= 30.0f; x += 0.00371f) {
    const auto wide = static_cast<double>(x);
    ASSERT_NEAR(static_cast<double>(sigmoid(x)) / sigmoid(wide), 1.0, 5e-7) << x;
    if (std::abs(x) < 10.0f) {
      ASSERT_NEAR(static_cast<double>(normal_density(x)) / normal_density(wide), 1.0, 6e-6) << x;
    }
  }
  EXPECT_EQ(sigmoid(-200.0f), 0.0f);
  EXPECT_EQ(sigmoid(200.0f), 1.0f);
}

TEST(IsFinite, looks_at_the_exponent) {
  for (const float x : {0.0f, -1.0f, 3e38f, 1e-45f}) {
    EXPECT_TRUE(is_finite(x));
    EXPECT_TRUE(is_finite(static_cast<double>(x)));
  }
  for (const float x : {infinity, -infinity, nan, -nan}) {
    EXPECT_FALSE(is_finite(x));
    EXPECT_FALSE(is_finite(static_cast<double>(x)));
  }
}

TEST(Lanes, sum_every_element_once) {
  for (Index n = 0; n < 70; ++n) {
    EXPECT_EQ(lane_sum<double>(n, [](Index i) { return static_cast<double>(i + 1); }),
              static_cast<double>(n * (n + 1) / 2));
  }
}

TEST(Lanes, find_the_maximum_wherever_it_is) {
  for (Index n = 1; n < 70; ++n) {
    for (Index at = 0; at < n; ++at) {
      const auto x = [=](Index i) { return i == at ? -1.0f : -2.0f - static_cast<float>(i); };
      ASSERT_EQ(lane_max<float>(n, x), -1.0f) << n << ", " << at;
      const auto with_nan = [=](Index i) { return i == at ? nan : static_cast<float>(i); };
      ASSERT_TRUE(std::isnan(lane_max<float>(n, with_nan))) << n << ", " << at;
    }
  }
  EXPECT_EQ(lane_max<float>(3, [](Index) { return -infinity; }), -infinity);
}

}  // namespace
}  // namespace handgrad
