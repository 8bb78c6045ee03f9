#include "handgrad/autograd/pool.h"

#include <gtest/gtest.h>

#include <cmath>

#include "handgrad/core/errors.h"

namespace handgrad {
namespace {

TEST(Pool, hands_out_what_was_given_back) {
  Pool<float> pool;
  const auto a = pool.acquire(1000), b = pool.acquire(1000);
  EXPECT_NE(a.data, b.data);
  EXPECT_EQ(pool.blocks_in_use(), 2);
  EXPECT_EQ(pool.bytes(), 8000);
  pool.release(a);
  EXPECT_EQ(pool.acquire(900).data, a.data);
  EXPECT_EQ(pool.bytes(), 8000);
}

// Taken from the front, each of many equal blocks would move all others.
TEST(Pool, of_equally_large_blocks_the_last_given_back_comes_first) {
  Pool<float> pool;
  const auto a = pool.acquire(100), b = pool.acquire(100), large = pool.acquire(10000);
  pool.release(a);
  pool.release(large);
  pool.release(b);
  EXPECT_EQ(pool.acquire(100).data, b.data);
  EXPECT_EQ(pool.acquire(100).data, a.data);
}

TEST(Pool, does_not_waste_a_large_block_on_a_small_request) {
  Pool<float> pool;
  const auto large = pool.acquire(10000);
  pool.release(large);
  EXPECT_NE(pool.acquire(100).data, large.data);
  EXPECT_EQ(pool.acquire(8000).data, large.data);  // not more than a quarter larger
}

TEST(Pool, poison_is_nan) {
  Pool<double> pool;
  pool.set_poison(true);
  const auto block = pool.acquire(3);
  for (Index i = 0; i < block.capacity; ++i) EXPECT_TRUE(std::isnan(block.data[i]));
}

}  // namespace
}  // namespace handgrad
