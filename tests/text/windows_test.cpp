#include "handgrad/text/windows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "handgrad/core/errors.h"
#include "support/message.h"

namespace handgrad {
namespace {

std::vector<TokenId> counting(Index n) {
  std::vector<TokenId> tokens(static_cast<std::size_t>(n));
  std::iota(tokens.begin(), tokens.end(), 0);
  return tokens;
}

std::vector<Index> permuted(Index size, std::uint64_t seed, Index epoch) {
  const Permutation permutation(size, seed, epoch);
  std::vector<Index> image;
  for (Index i = 0; i < size; ++i) image.push_back(permutation(i));
  return image;
}

TEST(Split, by_fraction_has_no_overlap) {
  const auto tokens = counting(100);
  const TokenSplit split = split_by_fraction(tokens, 0.1, 8);
  EXPECT_EQ(split.train.size(), 90u);
  EXPECT_EQ(split.validation.size(), 10u);
  const TokenWindows train(split.train, 8, DataOrder::random, 1), validation(split.validation, 8, DataOrder::random, 1);
  EXPECT_EQ(train.count(), 82);      // starts 0 to 81
  EXPECT_EQ(validation.count(), 2);  // starts 90 and 91 of the whole text
  std::vector<TokenId> inputs(8), targets(8);
  std::set<TokenId> trained, validated;
  for (Index k = 0; k < 2000; ++k) {
    train.fill(k, inputs, targets);
    trained.insert(inputs.begin(), inputs.end());
    trained.insert(targets.begin(), targets.end());
    validation.fill(k, inputs, targets);
    validated.insert(inputs.begin(), inputs.end());
    validated.insert(targets.begin(), targets.end());
  }
  EXPECT_EQ(*trained.begin(), 0);
  EXPECT_EQ(*trained.rbegin(), 89);
  EXPECT_EQ(*validated.begin(), 90);
  EXPECT_EQ(*validated.rbegin(), 99);
}

TEST(Split, rounds_the_training_part_down) {
  const auto size = [](Index n, double fraction) {
    const auto tokens = counting(n);
    return split_by_fraction(tokens, fraction, 1).train.size();
  };
  EXPECT_EQ(size(15, 0.1), 13u);
  EXPECT_EQ(size(10, 0.3), 7u);
  EXPECT_EQ(size(1000, 0.007), 993u);
  EXPECT_EQ(size(1115394, 0.1), 1003854u);
}

TEST(Split, names_the_part_that_is_too_short) {
  const auto tokens = counting(100);
  EXPECT_EQ(test::message_of<DataError>([&] { split_by_fraction(tokens, 0.1, 10); }),
            "validation part too short: it has 10 tokens, but a context of 10 needs at least one more than that; use "
            "a longer text or a smaller context");
  EXPECT_EQ(test::message_of<DataError>([&] { split_by_fraction(tokens, 0.5, 50); }),
            "training part too short: it has 50 tokens, but a context of 50 needs at least one more than that; use a "
            "longer text or a smaller context");
  EXPECT_EQ(test::message_of<DataError>([&] { split_as_given(tokens, std::span(tokens).first(3), 8); }),
            "validation part too short: it has 3 tokens, but a context of 8 needs at least one more than that; use a "
            "longer text or a smaller context");
  EXPECT_THROW(split_by_fraction(tokens, 0.0, 8), DataError);
  EXPECT_THROW(split_by_fraction({}, 0.1, 8), DataError);
  for (const double fraction : {-0.1, 1.0, std::numeric_limits<double>::quiet_NaN()}) {
    EXPECT_THROW(split_by_fraction(tokens, fraction, 8), RangeError);
  }
  EXPECT_THROW(split_by_fraction(tokens, 0.1, 0), RangeError);
}

TEST(Split, as_given_keeps_both_texts) {
  const auto train = counting(20), validation = counting(12);
  const TokenSplit split = split_as_given(train, validation, 8);
  EXPECT_EQ(split.train.data(), train.data());
  EXPECT_EQ(split.validation.size(), 12u);
}

TEST(Permutation, is_one) {
  for (const Index size : {1, 2, 3, 7, 64, 1000, 4097}) {
    for (Index epoch = 0; epoch < 3; ++epoch) {
      std::vector<Index> image = permuted(size, 7, epoch);
      std::sort(image.begin(), image.end());
      for (Index i = 0; i < size; ++i) ASSERT_EQ(image[static_cast<std::size_t>(i)], i) << size;
    }
  }
}

TEST(Permutation, depends_on_seed_and_epoch_alone) {
  EXPECT_EQ(permuted(1000, 7, 3), permuted(1000, 7, 3));
  EXPECT_NE(permuted(1000, 7, 3), permuted(1000, 7, 4));
  EXPECT_NE(permuted(1000, 7, 3), permuted(1000, 8, 3));
  EXPECT_NE(permuted(1000, 7, 3), permuted(1000, 7, 3 + (Index{1} << 32)));
}

// Each of the 6 orders of 3 occurs about equally often: 1000 times expected, standard deviation 29.
TEST(Permutation, is_fair_for_small_sizes) {
  std::vector<int> seen(27, 0);
  for (Index epoch = 0; epoch < 6000; ++epoch) {
    const auto p = permuted(3, 1, epoch);
    ++seen[static_cast<std::size_t>(p[0] * 9 + p[1] * 3 + p[2])];
  }
  EXPECT_EQ(std::count(seen.begin(), seen.end(), 0), 21);
  for (const int n : seen) EXPECT_TRUE(n == 0 || (n > 800 && n < 1200)) << n;
}

// Neighbours are far apart: the mean distance of two uniform places is size / 3.
TEST(Permutation, scatters_neighbours) {
  const auto p = permuted(4097, 5, 0);
  double sum = 0;
  for (std::size_t i = 1; i < p.size(); ++i) sum += static_cast<double>(std::abs(p[i] - p[i - 1]));
  EXPECT_NEAR(sum / 4096.0 / 4097.0, 1.0 / 3.0, 0.02);
}

TEST(Permutation, takes_huge_sizes_and_refuses_what_is_outside) {
  const Index huge = std::numeric_limits<Index>::max();
  const Permutation permutation(huge, 1, 0);
  EXPECT_GE(permutation(huge - 1), 0);
  EXPECT_THROW(permutation(huge), RangeError);
  EXPECT_THROW(permutation(-1), RangeError);
  EXPECT_THROW(Permutation(0, 1, 0), RangeError);
  EXPECT_THROW(Permutation(1, 1, -1), RangeError);
}

TEST(TokenWindows, epoch_order_has_no_short_window) {
  const auto seventeen = counting(17), sixteen = counting(16);
  const TokenWindows two(seventeen, 8, DataOrder::epoch, 1);
  EXPECT_EQ(two.count(), 2);
  EXPECT_EQ((std::set<Index>{two.start(0), two.start(1)}), (std::set<Index>{0, 8}));
  const TokenWindows one(sixteen, 8, DataOrder::epoch, 1);
  EXPECT_EQ(one.count(), 1);
  for (Index k = 0; k < 5; ++k) EXPECT_EQ(one.start(k), 0);
}

TEST(TokenWindows, every_epoch_meets_every_window_once) {
  const auto tokens = counting(1001);
  const TokenWindows windows(tokens, 10, DataOrder::epoch, 3);
  ASSERT_EQ(windows.count(), 100);
  std::vector<std::vector<Index>> orders;
  for (Index epoch = 0; epoch < 3; ++epoch) {
    std::vector<Index> starts;
    for (Index i = 0; i < 100; ++i) starts.push_back(windows.start(epoch * 100 + i));
    orders.push_back(starts);
    std::sort(starts.begin(), starts.end());
    for (Index i = 0; i < 100; ++i) EXPECT_EQ(starts[static_cast<std::size_t>(i)], 10 * i);
  }
  EXPECT_NE(orders[0], orders[1]);
  EXPECT_NE(orders[1], orders[2]);
}

TEST(TokenWindows, random_starts_cover_the_whole_range) {
  const auto tokens = counting(30);
  const TokenWindows windows(tokens, 8, DataOrder::random, 3);
  std::set<Index> starts;
  for (Index k = 0; k < 1000; ++k) starts.insert(windows.start(k));
  EXPECT_EQ(starts.size(), 22u);
  EXPECT_EQ(*starts.begin(), 0);
  EXPECT_EQ(*starts.rbegin(), 21);
}

TEST(TokenWindows, targets_are_the_next_tokens) {
  const auto tokens = counting(1000);
  for (const DataOrder order : {DataOrder::epoch, DataOrder::random}) {
    const TokenWindows windows(tokens, 7, order, 11);
    std::vector<TokenId> inputs(300 * 7), targets(300 * 7);
    windows.fill(5, inputs, targets);
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      ASSERT_EQ(inputs[i], windows.start(5 + static_cast<Index>(i) / 7) + static_cast<Index>(i) % 7);
      ASSERT_EQ(targets[i], inputs[i] + 1);
    }
  }
}

// An update sees the same samples, however it is divided into micro-batches.
TEST(TokenWindows, batches_may_be_cut_anywhere) {
  const auto tokens = counting(500);
  const TokenWindows windows(tokens, 4, DataOrder::epoch, 2);
  std::vector<TokenId> whole(32), whole_targets(32), part(16), part_targets(16);
  windows.fill(120, whole, whole_targets);  // across the end of the first epoch, which has 124 windows
  for (const Index half : {0, 1}) {
    windows.fill(120 + 4 * half, part, part_targets);
    EXPECT_TRUE(std::equal(part.begin(), part.end(), whole.begin() + 16 * half));
    EXPECT_TRUE(std::equal(part_targets.begin(), part_targets.end(), whole_targets.begin() + 16 * half));
  }
}

TEST(TokenWindows, refuses_what_does_not_fit) {
  const auto tokens = counting(8);
  EXPECT_EQ(test::message_of<DataError>([&] { TokenWindows(tokens, 8, DataOrder::random, 1); }),
            "text too short: it has 8 tokens, but a context of 8 needs at least one more than that; use a longer text "
            "or a smaller context");
  EXPECT_THROW(TokenWindows(tokens, std::numeric_limits<Index>::max(), DataOrder::epoch, 1), DataError);
  EXPECT_THROW(TokenWindows(tokens, 0, DataOrder::epoch, 1), RangeError);
  const TokenWindows windows(tokens, 7, DataOrder::epoch, 1);
  std::vector<TokenId> seven(7), eight(8), fourteen(14);
  EXPECT_THROW(windows.fill(0, seven, fourteen), ShapeError);
  EXPECT_THROW(windows.fill(0, eight, eight), ShapeError);
  EXPECT_THROW(windows.fill(-1, seven, seven), RangeError);
  EXPECT_THROW(windows.start(-1), RangeError);
  EXPECT_NO_THROW(windows.start(std::numeric_limits<Index>::max()));
}

TEST(EvaluationWindows, are_fixed_and_evenly_spread) {
  EXPECT_EQ(evaluation_starts(17, 8, 0), (std::vector<Index>{0, 8}));
  EXPECT_EQ(evaluation_starts(16, 8, 0), (std::vector<Index>{0}));
  EXPECT_EQ(evaluation_starts(81, 8, 0).size(), 10u);
  EXPECT_EQ(evaluation_starts(81, 8, 99), evaluation_starts(81, 8, 0));
  EXPECT_EQ(evaluation_starts(81, 8, 5), (std::vector<Index>{0, 16, 32, 48, 64}));
  EXPECT_EQ(evaluation_starts(81, 8, 3), (std::vector<Index>{0, 24, 48}));
  EXPECT_THROW(evaluation_starts(8, 8, 1), DataError);
  EXPECT_THROW(evaluation_starts(9, 8, -1), RangeError);
}

TEST(EvaluationWindows, are_filled_from_their_starts) {
  const auto tokens = counting(17);
  const auto starts = evaluation_starts(17, 8, 0);
  std::vector<TokenId> inputs(16), targets(16);
  fill_windows(tokens, starts, 8, inputs, targets);
  for (TokenId i = 0; i < 16; ++i) {
    EXPECT_EQ(inputs[static_cast<std::size_t>(i)], i);
    EXPECT_EQ(targets[static_cast<std::size_t>(i)], i + 1);
  }
  const std::vector<Index> outside = {0, 9}, negative = {-1, 0}, one = {0};
  EXPECT_THROW(fill_windows(tokens, outside, 8, inputs, targets), RangeError);
  EXPECT_THROW(fill_windows(tokens, negative, 8, inputs, targets), RangeError);
  EXPECT_THROW(fill_windows(tokens, one, 8, inputs, targets), ShapeError);
  EXPECT_THROW(fill_windows(tokens, starts, 0, inputs, targets), RangeError);
}

}  // namespace
}  // namespace handgrad
