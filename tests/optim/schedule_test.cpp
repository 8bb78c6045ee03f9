#include "handgrad/optim/schedule.h"

#include <gtest/gtest.h>

#include <cmath>

namespace handgrad {
namespace {

constexpr ScheduleKind kinds[] = {ScheduleKind::constant, ScheduleKind::linear, ScheduleKind::cosine,
                                  ScheduleKind::warmup_stable_decay};

Schedule schedule(ScheduleKind kind, Index warmup) {
  return {.kind = kind, .peak = 1.0, .floor = 0.1, .warmup = warmup, .total = 10, .decay = 4};
}

TEST(Schedule, is_defined_for_every_step) {
  for (const ScheduleKind kind : kinds) {
    for (const Index warmup : {0, 2, 10, 12}) {
      for (Index step = 0; step <= 20; ++step) {
        const double rate = schedule(kind, warmup).at(step);
        ASSERT_TRUE(std::isfinite(rate));
        ASSERT_GT(rate, 0.0);
        ASSERT_LE(rate, 1.0);
      }
    }
  }
}

TEST(Schedule, warms_up_to_the_peak) {
  for (const ScheduleKind kind : kinds) {
    EXPECT_EQ(schedule(kind, 0).at(0), 1.0);
    EXPECT_EQ(schedule(kind, 2).at(0), 0.5);
    EXPECT_EQ(schedule(kind, 2).at(1), 1.0);
    EXPECT_EQ(schedule(kind, 2).at(2), 1.0);
    EXPECT_EQ(schedule(kind, 10).at(4), 0.5);
    EXPECT_EQ(schedule(kind, 12).at(9), 10.0 / 12.0);
  }
}

TEST(Schedule, cosine_falls_to_the_floor_and_stays) {
  const Schedule s = schedule(ScheduleKind::cosine, 2);
  const double expected[] = {0.9657, 0.8682, 0.7222, 0.55, 0.3778, 0.2318, 0.1343};
  for (Index i = 0; i < 7; ++i) EXPECT_NEAR(s.at(3 + i), expected[i], 5e-5) << 3 + i;
  for (Index step = 10; step < 40; ++step) EXPECT_NEAR(s.at(step), 0.1, 1e-15) << step;
}

TEST(Schedule, the_other_kinds) {
  EXPECT_NEAR(schedule(ScheduleKind::linear, 2).at(6), 0.55, 1e-15);
  EXPECT_NEAR(schedule(ScheduleKind::linear, 2).at(30), 0.1, 1e-15);
  EXPECT_EQ(schedule(ScheduleKind::constant, 2).at(30), 1.0);
  const Schedule stable = schedule(ScheduleKind::warmup_stable_decay, 2);
  EXPECT_EQ(stable.at(5), 1.0);
  EXPECT_EQ(stable.at(6), 1.0);
  EXPECT_NEAR(stable.at(8), 0.55, 1e-15);
  EXPECT_NEAR(stable.at(10), 0.1, 1e-15);
}

}  // namespace
}  // namespace handgrad
