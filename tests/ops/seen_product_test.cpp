#include "ops/seen_product.h"

#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <limits>
#include <utility>
#include <vector>

namespace handgrad {
namespace {

template <class S>
class SeenProduct : public ::testing::Test {};
using EveryScalar = ::testing::Types<float, double, std::complex<double>>;
TYPED_TEST_SUITE(SeenProduct, EveryScalar);

// Every element counts, and the gaps between rows do not.
TYPED_TEST(SeenProduct, all_finite_looks_at_every_element) {
  using S = TypeParam;
  const double nan = std::numeric_limits<double>::quiet_NaN(), inf = std::numeric_limits<double>::infinity();
  for (const Index cols : {1, 8, 15, 16, 17, 33, 48}) {
    const Index rows = 3, stride = cols + 5;
    std::vector<S> memory(static_cast<std::size_t>(rows * stride), S(nan));
    const Rows<S> x{memory.data(), rows, cols, stride};
    for (Index r = 0; r < rows; ++r) std::fill(x.row(r), x.row(r) + cols, S(std::numeric_limits<float>::max()));
    EXPECT_TRUE(all_finite(Rows<const S>(x))) << cols;
    for (Index r = 0; r < rows; ++r) {
      for (Index c = 0; c < cols; ++c) {
        for (const double value : {nan, inf, -inf}) {
          const S kept = std::exchange(x.row(r)[c], S(value));
          EXPECT_FALSE(all_finite(Rows<const S>(x))) << cols << ": " << r << ", " << c;
          x.row(r)[c] = kept;
        }
      }
    }
  }
}

// An imaginary part counts as well.
TEST(SeenProductOfComplex, all_finite_looks_at_both_parts) {
  const std::complex<double> x[] = {{1.0, 2.0}, {1.0, std::numeric_limits<double>::infinity()}};
  EXPECT_TRUE(all_finite(Rows<const std::complex<double>>{x, 1, 1, 2}));
  EXPECT_FALSE(all_finite(Rows<const std::complex<double>>{x, 1, 2, 2}));
}

TYPED_TEST(SeenProduct, a_copy_keeps_stride_and_alignment) {
  using S = TypeParam;
  std::vector<S> memory(64, S(3.0));
  for (Index begin = 0; begin < 9; ++begin) {
    const Rows<const S> x{memory.data() + begin, 4, 5, 11};
    const SelectedCopy<S> copy(x, [](Index r, Index c) { return r != c; });
    EXPECT_EQ(copy.matrix().stride, 11);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(copy.matrix().data) % 64, reinterpret_cast<std::uintptr_t>(x.data) % 64);
    for (Index r = 0; r < 4; ++r) {
      for (Index c = 0; c < 5; ++c) EXPECT_EQ(copy.matrix().row(r)[c], r == c ? S(0) : S(3.0));
    }
  }
}

// An infinite element is multiplied by its coefficient: the sign counts, and 0 times infinity is NaN.
TYPED_TEST(SeenProduct, an_infinite_element_is_multiplied_by_its_coefficient) {
  using S = TypeParam;
  const double inf = std::numeric_limits<double>::infinity();
  const std::vector<S> a{S(2.0), S(-2.0), S(0.0), S(-2.0)}, b{S(inf)};
  std::vector<S> c(4, S(1.0));
  multiply_seen<S>({Rows<const S>{a.data(), 4, 1, 1}}, {Rows<const S>{b.data(), 1, 1, 1}}, S(1.0), Store::add,
                   Rows<S>{c.data(), 4, 1, 1}, Transpose::no, false, [](Index r, Index, Index) { return r < 3; });
  EXPECT_EQ(std::real(c[0]), inf);
  EXPECT_EQ(std::real(c[1]), -inf);
  EXPECT_TRUE(std::isnan(std::real(c[2])));
  EXPECT_EQ(c[3], S(1.0)) << "hidden";
}

}  // namespace
}  // namespace handgrad
