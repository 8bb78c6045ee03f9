#include <limits>

#include "core/math.h"
#include "handgrad/ops/ops.h"
#include "support/message.h"
#include "support/values.h"

namespace handgrad::test {
namespace {

template <class S>
constexpr S infinity = std::numeric_limits<S>::infinity();
template <class S>
constexpr S nan = std::numeric_limits<S>::quiet_NaN();

template <class S>
class Softmax : public ::testing::Test {
 public:
  static std::vector<S> of(const Tensor<S>& x, int axis = -1) {
    Tape<S> tape(false);
    return elements(softmax(tape.constant(x), axis));
  }
  static constexpr double exact = std::is_same_v<S, float> ? 5e-7 : 1e-15;
};
using Scalars = ::testing::Types<float, double>;
TYPED_TEST_SUITE(Softmax, Scalars);

// Without subtracting the maximum, to show its effect.
template <class S>
std::vector<S> naive_softmax(const std::vector<S>& x) {
  S total = 0;
  std::vector<S> y;
  for (const S v : x) y.push_back(exp_of(v)), total += y.back();
  for (S& v : y) v /= total;
  return y;
}

TYPED_TEST(Softmax, does_not_overflow_where_the_naive_form_does) {
  using S = TypeParam;
  const S big = std::is_same_v<S, float> ? S(100) : S(1000);
  EXPECT_TRUE(std::isnan(naive_softmax<S>({big, S(0)})[0]));
  EXPECT_TRUE(std::isnan(naive_softmax<S>({-2 * big, -2 * big})[0]));  // 0 / 0
  EXPECT_EQ(this->of(Tensor<S>({2}, {big, S(0)}))[0], S(1));
  expect_near(this->of(Tensor<S>({2}, {-2 * big, -2 * big})), std::vector<double>{0.5, 0.5}, this->exact);
  for (const double c : {1e4, 1e8, 1e30}) {
    const S s = static_cast<S>(c);
    expect_near(this->of(Tensor<S>({3}, {s, s, -s})), std::vector<double>{0.5, 0.5, 0}, this->exact);
  }
}

TYPED_TEST(Softmax, rows_sum_to_one_and_their_gradients_to_zero) {
  using S = TypeParam;
  for (const Index n : {1, 2, 17, 100}) {
    Tape<S> tape;
    const auto x = tape.variable(random_tensor<S>({30, n}, 1, 3.0));
    const auto y = softmax(x);
    const auto values = elements(y);
    tape.backward(y, random_tensor<S>({30, n}, 2));
    const auto slopes = gradient(x);
    for (std::size_t r = 0; r < 30; ++r) {
      double total = 0, slope = 0;
      for (std::size_t i = 0; i < static_cast<std::size_t>(n); ++i) {
        const std::size_t at = r * static_cast<std::size_t>(n) + i;
        EXPECT_GE(values[at], S(0));
        total += static_cast<double>(values[at]);
        slope += static_cast<double>(slopes[at]);
      }
      EXPECT_NEAR(total, 1.0, 2 * this->exact);
      EXPECT_NEAR(slope, 0.0, 3 * this->exact);
    }
  }
}

// The kernels take any layout: here x runs down the columns of a matrix, y along its rows, and the other way round.
TYPED_TEST(Softmax, operands_may_lie_in_different_directions) {
  using S = TypeParam;
  const Index rows = 3, cols = 21;
  const auto x = random_tensor<S>({cols, rows}, 1);
  const View<const S> turned{x.data(), {rows, cols}, {1, rows}};
  Tensor<S> y({rows, cols}), log_y({rows, cols}), transposed({cols, rows});
  softmax_forward<S>(turned, y.view());
  log_softmax_forward<S>(turned, log_y.view());
  softmax_forward<S>(turned, View<S>{transposed.data(), {rows, cols}, {1, rows}});
  for (Index r = 0; r < rows; ++r) {
    double total = 0;
    for (Index c = 0; c < cols; ++c) total += std::exp(static_cast<double>(x[c * rows + r]));
    for (Index c = 0; c < cols; ++c) {
      const double expected = std::exp(static_cast<double>(x[c * rows + r])) / total;
      EXPECT_NEAR(static_cast<double>(y[r * cols + c]), expected, this->exact);
      EXPECT_NEAR(static_cast<double>(transposed[c * rows + r]), expected, this->exact);
      EXPECT_NEAR(static_cast<double>(log_y[r * cols + c]), std::log(expected), 4 * this->exact);
    }
  }
}

TYPED_TEST(Softmax, is_monotone_in_x) {
  using S = TypeParam;
  std::vector<S> ascending;
  for (S x = S(-90); x < S(90); x += S(0.37)) ascending.push_back(x), ascending.push_back(std::nextafter(x, S(100)));
  const auto y = this->of(Tensor<S>(Shape{static_cast<Index>(ascending.size())}, std::span<const S>(ascending)));
  for (std::size_t i = 1; i < y.size(); ++i) EXPECT_GE(y[i], y[i - 1]) << ascending[i];
}

TYPED_TEST(Softmax, a_row_of_nothing_gives_zeros) {
  using S = TypeParam;
  Tape<S> tape;
  const S no = -infinity<S>;
  const auto x = tape.variable(Tensor<S>({3, 2}, {no, no, S(1), no, S(1), S(1)}));
  const auto y = softmax(x);
  expect_near(elements(y), std::vector<double>{0, 0, 1, 0, 0.5, 0.5}, 0.0);
  tape.backward(y, Tensor<S>({3, 2}, {S(1), S(2), S(3), S(4), S(1), S(-1)}));
  expect_near(gradient(x), std::vector<double>{0, 0, 0, 0, 0.5, -0.5}, 0.0);
}

TYPED_TEST(Softmax, passes_nan_on_in_its_row_alone) {
  using S = TypeParam;
  for (const auto& y : {this->of(Tensor<S>({2, 3}, {S(1), nan<S>, -infinity<S>, S(0), S(0), -infinity<S>}))}) {
    for (std::size_t i = 0; i < 3; ++i) EXPECT_TRUE(std::isnan(y[i]));
    EXPECT_EQ(y[3], S(0.5));
  }
  const auto y = this->of(Tensor<S>({2}, {-infinity<S>, nan<S>}));
  EXPECT_TRUE(std::isnan(y[0]) && std::isnan(y[1]));
}

TYPED_TEST(Softmax, runs_along_any_axis) {
  using S = TypeParam;
  const Tensor<S> x = random_tensor<S>({3, 4, 5}, 1);
  for (const int axis : {0, 1, -3, -2}) {
    Tape<S> tape(false);
    const auto v = tape.constant(x);
    const auto moved = softmax(contiguous(v.transpose(axis, -1))).transpose(axis, -1);
    EXPECT_TRUE(same_bits(this->of(x, axis), elements(moved))) << axis;
    expect_near(elements(log_softmax(v, axis)),
                elements(log_softmax(contiguous(v.transpose(axis, -1))).transpose(axis, -1)), 0.0);
  }
  EXPECT_THROW(this->of(x, 3), ShapeError);
  EXPECT_THROW(this->of(x, -4), ShapeError);
}

TYPED_TEST(Softmax, is_the_exponential_of_log_softmax) {
  using S = TypeParam;
  Tape<S> tape(false);
  const auto x = tape.constant(random_tensor<S>({7, 19}, 1, 5.0));
  auto logarithms = elements(log_softmax(x));
  for (S& v : logarithms) v = std::exp(v);
  expect_near(logarithms, elements(softmax(x)), 4 * this->exact);
}

TYPED_TEST(Softmax, of_a_row_of_nothing_has_no_logarithm) {
  using S = TypeParam;
  Tape<S> tape;
  const S no = -infinity<S>;
  const auto x = tape.variable(Tensor<S>({2, 2}, {S(0), S(0), no, no}));
  EXPECT_EQ(test::message_of<RangeError>([&] { log_softmax(x); }),
            "log_softmax: row 1 has only -infinity, which has no distribution");
  EXPECT_THROW(log_softmax(x, 2), ShapeError);
  EXPECT_TRUE(std::isnan(elements(log_softmax(tape.constant(Tensor<S>({2}, {nan<S>, no}))))[0]));
}

TEST(MaskedFill, selects_and_forgets_what_stood_there) {
  Tape<double> tape;
  const Mask mask({2}, {1, 0});
  const auto x = tape.variable(Tensor<double>({2, 2}, {nan<double>, 2, infinity<double>, 4}));
  const auto y = masked_fill(x, mask.view(), -5.0);
  EXPECT_EQ(elements(y), (std::vector<double>{-5, 2, -5, 4}));
  tape.backward(y, Tensor<double>({2, 2}, {nan<double>, 2, 3, 4}));
  EXPECT_EQ(gradient(x), (std::vector<double>{0, 2, 0, 4}));
  const Mask wrong({3}, {1, 0, 1}), larger(Shape{3, 2, 2});
  EXPECT_THROW(masked_fill(x, wrong.view(), 0.0), ShapeError);
  EXPECT_THROW(masked_fill(x, larger.view(), 0.0), ShapeError);
}

}  // namespace
}  // namespace handgrad::test
