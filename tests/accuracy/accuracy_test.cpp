#include "accuracy/table.h"

namespace handgrad::test {
namespace {

// The same as the long test, with fewer inputs.
TEST(Accuracy, is_what_the_table_says) { expect_documented(20000); }

TEST(Accuracy, is_measured_in_units_of_the_last_place) {
  ErrorMeter<float> meter;
  meter.in_ulps(1.0f, 1.0L);
  EXPECT_EQ(meter.worst(), 0.0);
  meter.in_ulps(std::nextafter(1.0f, 2.0f), 1.0L);  // floats of [1, 2) are 2^-23 apart
  EXPECT_DOUBLE_EQ(meter.worst(), 1.0);
  meter.in_ulps(3.0f, 3.0L + 0x1p-21L);  // those of [2, 4) 2^-22
  EXPECT_DOUBLE_EQ(meter.worst(), 2.0);
  EXPECT_DOUBLE_EQ(meter.mean(), 1.0);
  ErrorMeter<float> sum;
  sum.in_terms(0.0f, 0x1p-20L, 2.0L);  // 1 + (2^-20 - 1): terms of size 2
  EXPECT_DOUBLE_EQ(sum.worst(), 4.0);
}

TEST(Accuracy, knows_what_overflows_and_what_is_flushed) {
  ErrorMeter<float> meter;
  meter.in_ulps(std::numeric_limits<float>::infinity(), 1e39L);  // nothing is claimed
  EXPECT_EQ(meter.count(), 0);
  meter.in_ulps(0.0f, 1e-39L);  // below FLT_MIN
  EXPECT_EQ(meter.worst(), 0.0);
  meter.in_ulps(0.0f, 1e-30L);
  EXPECT_GT(meter.worst(), 1e6);
  meter.in_ulps(std::numeric_limits<float>::quiet_NaN(), 1.0L);
  EXPECT_TRUE(std::isinf(meter.worst()));
}

}  // namespace
}  // namespace handgrad::test
