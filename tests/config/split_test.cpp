#include "handgrad/config/split.h"

#include <gtest/gtest.h>

#include "handgrad/core/errors.h"

namespace handgrad {
namespace {

Config config_of(Index context, Index batch_size, Index accumulation) {
  Config config;
  config.model.context = context, config.train.batch_size = batch_size, config.train.accumulation = accumulation;
  return config;
}

TEST(Split, a_block_has_256_tokens_or_more) {
  EXPECT_EQ(block_sequences(1), 256);
  EXPECT_EQ(block_sequences(64), 4);
  EXPECT_EQ(block_sequences(100), 3);
  EXPECT_EQ(block_sequences(255), 2);
  EXPECT_EQ(block_sequences(256), 1);
  EXPECT_EQ(block_sequences(5000), 1);
  EXPECT_THROW(block_sequences(0), RangeError);
}

TEST(Split, is_noted_where_bits_depend_on_it) {
  EXPECT_EQ(split_note(config_of(64, 8, 3)), "");
  EXPECT_EQ(split_note(config_of(64, 4, 2)), "");
  EXPECT_EQ(split_note(config_of(64, 3, 1)), "") << "one micro-batch is no split";
  EXPECT_EQ(split_note(config_of(256, 1, 8)), "");
  EXPECT_EQ(
      split_note(config_of(64, 6, 2)),
      "train.batch_size 6 is not a multiple of 4: with train.accumulation 2 the bits of this run depend on the split "
      "of its batches. Gradients are summed in blocks of 4 sequences (256 tokens / model.context 64, rounded up); "
      "a multiple of 4 gives the same bits for every split");
  EXPECT_NE(split_note(config_of(255, 1, 2)), "");
  EXPECT_THROW(split_note(config_of(0, 1, 2)), ConfigError);
}

}  // namespace
}  // namespace handgrad
