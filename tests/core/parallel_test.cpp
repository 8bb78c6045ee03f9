#include "handgrad/core/parallel.h"

#include <gtest/gtest.h>

#include <atomic>
#include <limits>
#include <stdexcept>
#include <vector>

namespace handgrad {
namespace {

// Half of the smallest normal number, kept from the compiler: 0 where denormals are flushed.
float halved_minimum() {
  volatile float smallest = std::numeric_limits<float>::min();
  volatile float half = smallest * 0.5f;
  return half;
}

// A denormal as an operand: 0 where denormals are zero.
float doubled_denormal() {
  volatile float denormal = std::numeric_limits<float>::denorm_min();
  volatile float doubled = denormal * 0x1p100f;
  return doubled;
}

TEST(Parallel, every_tile_is_done_once) {
  for (const int threads : {1, 2, 4}) {
    const ThreadScope scope(threads);
    for (const Index tiles : {0, 1, 2, 7, 1000}) {
      std::vector<std::atomic<int>> calls(static_cast<std::size_t>(tiles));
      parallel_tiles(tiles, [&](Index i) { ++calls[static_cast<std::size_t>(i)]; });
      for (const auto& count : calls) ASSERT_EQ(count, 1);
    }
  }
}

TEST(Parallel, ranges_cover_everything_once) {
  const ThreadScope scope(2);
  std::vector<int> calls(103);
  parallel_ranges(103, 10, [&](Index begin, Index end) {
    EXPECT_EQ(begin % 10, 0);
    EXPECT_LE(end - begin, 10);
    for (Index i = begin; i < end; ++i) ++calls[static_cast<std::size_t>(i)];
  });
  EXPECT_EQ(calls, std::vector<int>(103, 1));
  parallel_ranges(0, 10, [](Index, Index) { FAIL(); });
}

TEST(Parallel, an_exception_of_a_tile_reaches_the_caller) {
  for (const int threads : {1, 2, 4}) {
    const ThreadScope scope(threads);
    EXPECT_THROW(parallel_tiles(50,
                                [](Index i) {
                                  if (i % 7 == 3) throw std::out_of_range("tile");
                                }),
                 std::out_of_range);
    std::atomic<int> done = 0;
    parallel_tiles(50, [&](Index) { ++done; });  // no state remains
    EXPECT_EQ(done, 50);
  }
}

TEST(Parallel, denormals_are_flushed_inside_and_not_outside) {
  ASSERT_GT(halved_minimum(), 0.0f);
  for (const int threads : {1, 3}) {
    const ThreadScope scope(threads);
    std::atomic<int> kept = 0;
    parallel_tiles(60, [&](Index) {
      if (halved_minimum() != 0.0f || doubled_denormal() != 0.0f) ++kept;
    });
    EXPECT_EQ(kept, 0) << threads << " threads";
    EXPECT_GT(halved_minimum(), 0.0f);
    EXPECT_GT(doubled_denormal(), 0.0f);
    EXPECT_THROW(parallel_tiles(4, [](Index) { throw std::runtime_error("tile"); }), std::runtime_error);
    EXPECT_GT(halved_minimum(), 0.0f) << "after an exception";
  }
}

TEST(Parallel, nested_tiles_run_in_the_thread_of_the_outer_one) {
  const ThreadScope scope(3);
  std::vector<int> calls(20 * 30);
  parallel_tiles(20, [&](Index outer) {
    int own = 0;  // no other thread may touch it
    parallel_tiles(30, [&](Index inner) {
      ++own;
      ++calls[static_cast<std::size_t>(outer * 30 + inner)];
    });
    EXPECT_EQ(own, 30);
    EXPECT_EQ(halved_minimum(), 0.0f);  // still inside
  });
  EXPECT_EQ(calls, std::vector<int>(600, 1));
}

TEST(Parallel, a_thread_scope_ends) {
  const int before = thread_count();
  {
    const ThreadScope scope(7);
    EXPECT_EQ(thread_count(), 7);
    const ThreadScope least(0);
    EXPECT_EQ(thread_count(), 1);
  }
  EXPECT_EQ(thread_count(), before);
  EXPECT_GE(available_cores(), 1);
}

}  // namespace
}  // namespace handgrad
