#include "handgrad/generate/sampling.h"

#include <gtest/gtest.h>

#include <cmath>

#include "handgrad/core/errors.h"
#include "support/message.h"

namespace handgrad {
namespace {

using test::message_of;

// Logits with these probabilities as their softmax.
std::vector<float> logits_of(const std::vector<double>& probabilities) {
  std::vector<float> logits;
  for (const double p : probabilities) logits.push_back(static_cast<float>(std::log(p)));
  return logits;
}

SamplingOptions options(double temperature, Index top_k = 0, double top_p = 1.0) {
  return {.temperature = temperature, .top_k = top_k, .top_p = top_p};
}

std::vector<TokenId> ids(const std::vector<generate::Candidate>& candidates) {
  std::vector<TokenId> all;
  for (const generate::Candidate& c : candidates) all.push_back(c.token);
  return all;
}

using Ids = std::vector<TokenId>;

TEST(Sampling, top_k) {
  const std::vector<float> logits = {1, 3, 3, 0, 2};
  EXPECT_EQ(ids(generate::candidates(logits, options(1.0, 0))), (Ids{1, 2, 4, 0, 3}));
  EXPECT_EQ(ids(generate::candidates(logits, options(1.0, 5))), (Ids{1, 2, 4, 0, 3}));
  EXPECT_EQ(ids(generate::candidates(logits, options(1.0, 100))), (Ids{1, 2, 4, 0, 3}));
  EXPECT_EQ(ids(generate::candidates(logits, options(1.0, INT64_MAX))), (Ids{1, 2, 4, 0, 3}));
  EXPECT_EQ(ids(generate::candidates(logits, options(1.0, 1))), Ids{1});  // the lower id of two equal logits
  EXPECT_EQ(ids(generate::candidates(logits, options(1.0, 3))), (Ids{1, 2, 4}));
  EXPECT_EQ(message_of<RangeError>([&] { generate::candidates(logits, options(1.0, -1)); }),
            "top-k: must be at least 0 (0: off), got -1");
}

TEST(Sampling, temperature) {
  const std::vector<float> logits = {1, 3, 3, 0};
  for (const double temperature : {0.0, 1e-300}) {
    for (std::uint64_t n = 0; n < 20; ++n) {
      const TokenId token = sample_token(logits, options(temperature), n);
      EXPECT_TRUE(token == 1 || (temperature > 0.0 && token == 2)) << token;
    }
  }
  // Without a tie, the same token is drawn, and no NaN occurs.
  for (const double temperature : {0.0, 1e-6, 1e-300}) {
    const auto left = generate::candidates(std::vector<float>{1, 3, 2.5f, 0}, options(temperature));
    EXPECT_EQ(left[0].token, 1);
    EXPECT_EQ(left[0].probability, 1.0);
  }
  for (const auto& [temperature, text] : {std::pair{-1.0, "-1"}, {std::nan(""), "nan"}, {INFINITY, "inf"}}) {
    EXPECT_EQ(message_of<RangeError>([&, t = temperature] { generate::candidates(logits, options(t)); }),
              std::string("temperature: must be from 0 to 1e6, got ") + text);
  }
  // Twice the temperature: the odds become their square roots.
  const auto hot = generate::candidates(logits_of({0.8, 0.2}), options(2.0));
  EXPECT_NEAR(hot[0].probability / hot[1].probability, 2.0, 1e-6);
}

TEST(Sampling, top_p) {
  const auto check = [](const std::vector<double>& p, double top_p, const Ids& expected) {
    EXPECT_EQ(ids(generate::candidates(logits_of(p), options(1.0, 0, top_p))), expected) << "p = " << top_p;
  };
  check({.4, .3, .2, .1}, .8, {0, 1, 2});
  check({.5, .41, .09}, .9, {0, 1});
  check({.5, .3, .2}, 0.0, {0});
  check({.5, .3, .2}, 1e-8, {0});
  check({.5, .3, .2}, 1.0, {0, 1, 2});
  check({.1, .2, .3, .4}, .8, {3, 2, 1});
  check({.2, .4, .1, .3}, .8, {1, 3, 0});
  const auto left = generate::candidates(logits_of({.4, .3, .2, .1}), options(1.0, 0, .8));
  EXPECT_NEAR(left[0].probability, 4.0 / 9, 1e-7);
  EXPECT_NEAR(left[1].probability, 3.0 / 9, 1e-7);
  EXPECT_NEAR(left[2].probability, 2.0 / 9, 1e-7);
  for (const double p : {-0.1, 1.1, std::nan("")}) {
    EXPECT_THROW(generate::candidates(logits_of({.5, .5}), options(1.0, 0, p)), RangeError) << p;
  }
}

// Logits are floats, and log(0.5) in float need not give exactly half. These limits are exact in float.
TEST(Sampling, top_p_stops_where_it_is_reached) {
  const std::vector<float> equal(4, 1.0f);
  EXPECT_EQ(ids(generate::candidates(equal, options(1.0, 0, .5))), (Ids{0, 1}));
  EXPECT_EQ(ids(generate::candidates(equal, options(1.0, 0, .25))), (Ids{0}));
  EXPECT_EQ(ids(generate::candidates(equal, options(1.0, 0, .26))), (Ids{0, 1}));
  EXPECT_EQ(ids(generate::candidates(logits_of({.5, .3, .2}), options(1.0, 0, .5))), (Ids{0}));
}

// Top-k first, then top-p of the remaining tokens.
TEST(Sampling, top_k_comes_before_top_p) {
  const auto logits = logits_of({.4, .3, .2, .1});
  EXPECT_EQ(ids(generate::candidates(logits, options(1.0, 2, .5))), Ids{0});  // .4 / .7 reaches .5; .4 does not
  EXPECT_EQ(ids(generate::candidates(logits, options(1.0, 0, .5))), (Ids{0, 1}));
}

TEST(Sampling, draws_by_running_sum) {
  const std::vector<generate::Candidate> left = {{0, .9}, {2, .1}, {1, 0.0}};
  EXPECT_EQ(generate::draw(left, 0.0), 0);
  EXPECT_EQ(generate::draw(left, 0.8999), 0);
  EXPECT_EQ(generate::draw(left, 0.9), 2);
  EXPECT_EQ(generate::draw(left, .9999999999), 2);
  EXPECT_EQ(generate::draw(left, std::nextafter(1.0, 0.0)), 2);
  const std::vector<generate::Candidate> short_of_one = {{4, .3}, {3, .3}, {1, .3}, {0, 0.0}};
  EXPECT_EQ(generate::draw(short_of_one, std::nextafter(1.0, 0.0)), 1);
}

TEST(Sampling, logits_that_are_not_finite) {
  const float inf = INFINITY, nan = std::nanf("");
  for (const double temperature : {0.0, 1.0}) {
    EXPECT_EQ(message_of<NonFiniteError>([&] {
                generate::candidates(std::vector<float>{1, nan}, options(temperature));
              }),
              "sampling: the logit of token 1 is nan");
    EXPECT_EQ(message_of<NonFiniteError>([&] {
                generate::candidates(std::vector<float>{inf, 1}, options(temperature));
              }),
              "sampling: the logit of token 0 is inf");
    // A token with the logit -infinity is never drawn.
    for (std::uint64_t n = 0; n < 50; ++n) {
      EXPECT_EQ(sample_token(std::vector<float>{-inf, 1, -inf}, options(temperature), n), 1);
    }
    EXPECT_EQ(message_of<NonFiniteError>([&] {
                generate::candidates(std::vector<float>{-inf, -inf}, options(temperature));
              }),
              "sampling: every logit is -infinity");
  }
  const std::vector<float> large = {3e38f, -3e38f, 3e38f};
  EXPECT_EQ(generate::candidates(large, options(1e-6)).size(), 3u);
  EXPECT_EQ(generate::candidates(large, options(1e-6))[0].probability, 0.5);
}

TEST(Sampling, a_histogram_of_draws) {
  const std::vector<double> p = {.1, .2, .3, .4};
  const auto logits = logits_of(p);
  const auto histogram = [&](const SamplingOptions& o) {
    std::vector<int> counts(4);
    for (std::uint64_t n = 0; n < 10000; ++n) ++counts[static_cast<std::size_t>(sample_token(logits, o, n))];
    return counts;
  };
  const auto all = histogram(options(1.0));
  const auto most = histogram(options(1.0, 0, .8));
  const double kept[] = {0, 2.0 / 9, 3.0 / 9, 4.0 / 9};
  for (std::size_t i = 0; i < 4; ++i) {  // within five standard deviations
    EXPECT_NEAR(all[i], 10000 * p[i], 5 * std::sqrt(10000 * p[i] * (1 - p[i])));
    EXPECT_NEAR(most[i], 10000 * kept[i], 5 * std::sqrt(10000 * kept[i] * (1 - kept[i])));
  }
}

TEST(Sampling, is_a_function_of_seed_and_number) {
  const auto logits = logits_of({.25, .25, .25, .25});
  const auto text = [&](std::uint64_t seed) {
    SamplingOptions o;
    o.seed = seed;
    Ids tokens;
    for (std::uint64_t n = 0; n < 40; ++n) tokens.push_back(sample_token(logits, o, n));
    return tokens;
  };
  EXPECT_EQ(text(1), text(1));
  EXPECT_NE(text(1), text(2));
}

}  // namespace
}  // namespace handgrad
