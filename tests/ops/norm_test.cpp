#include "handgrad/ops/ops.h"
#include "support/message.h"
#include "support/values.h"

namespace handgrad::test {
namespace {

using test::message_of;

template <class S>
class Norm : public ::testing::Test {
 public:
  static constexpr double exact = std::is_same_v<S, float> ? 2e-6 : 1e-14;
};
using Scalars = ::testing::Types<float, double>;
TYPED_TEST_SUITE(Norm, Scalars);

template <class S>
struct NormRun {
  std::vector<S> y, dx, dw, db;
};

template <class S>
NormRun<S> run(const Tensor<S>& x, bool rms, double eps = 1e-5) {
  Tape<S> tape;
  const Index width = x.shape()[-1];
  const auto v = tape.variable(x), w = tape.variable(random_tensor<S>({width}, 2)),
             b = tape.variable(random_tensor<S>({width}, 3));
  const auto y = rms ? rms_norm(v, w, eps) : layer_norm(v, w, b, eps);
  tape.backward(y, random_tensor<S>(x.shape(), 4));
  return {elements(y), gradient(v), gradient(w), rms ? std::vector<S>{} : gradient(b)};
}

TYPED_TEST(Norm, of_a_row_by_hand) {
  using S = TypeParam;
  Tape<S> tape(false);
  const auto x = tape.constant(Tensor<S>({1, 2}, {S(1), S(3)}));
  const auto w = tape.constant(Tensor<S>({2}, {S(2), S(1)})), b = tape.constant(Tensor<S>({2}, {S(0.5), S(0)}));
  expect_near(elements(layer_norm(x, w, b, 0.0)), std::vector<double>{-1.5, 1.0}, this->exact);
  expect_near(elements(layer_norm(x, w, {}, 3.0)), std::vector<double>{-1.0, 0.5}, this->exact);  // 1 / sqrt(1 + 3)
  const double r = 1 / std::sqrt(5.0);
  expect_near(elements(rms_norm(x, w, 0.0)), std::vector<double>{2 * r, 3 * r}, this->exact);
  expect_near(elements(rms_norm(x, w, 4.0)), std::vector<double>{2.0 / 3, 1.0}, this->exact);
}

TYPED_TEST(Norm, activations_of_any_size_give_finite_numbers) {
  using S = TypeParam;
  for (const double size : {1e-30, 1e-20, 1e-5, 1.0, 1e5, 1e20, 1e30}) {
    for (const bool rms : {true, false}) {
      const auto r = run(random_tensor<S>({3, 20}, 1, size), rms);
      for (const auto* values : {&r.y, &r.dx, &r.dw, &r.db}) {
        for (const S v : *values) ASSERT_TRUE(std::isfinite(v)) << size << (rms ? " rms" : " layer");
      }
    }
  }
}

TYPED_TEST(Norm, large_activations_are_normalised_as_small_ones) {
  using S = TypeParam;
  const auto unit = run(random_tensor<S>({3, 20}, 1), true, 1e-20),
             large = run(random_tensor<S>({3, 20}, 1, 1e30), true, 1e-20);
  expect_near(large.y, unit.y, 1e-5);
  const auto layer = run(random_tensor<S>({3, 20}, 1), false, 1e-20),
             big = run(random_tensor<S>({3, 20}, 1, 1e30), false, 1e-20);
  expect_near(big.y, layer.y, 1e-5);
}

// The variance is a sum over differences to the mean, so a large common offset does not reduce its accuracy.
TEST(NormNumbers, a_large_common_offset_does_no_harm) {
  const Index n = 64;
  const Tensor<double> x = random_tensor<double>({1, n}, 1);
  Tensor<double> shifted(x.shape()), ones({n}), y(x.shape()), far(x.shape());
  for (Index i = 0; i < n; ++i) shifted[i] = x[i] + 1e7, ones[i] = 1.0;
  double mean = 0.0, inverse = 0.0;
  const LayerNormStatistics<double> statistics{std::span(&mean, 1), std::span(&inverse, 1)};
  layer_norm_forward<double>(x.rows(), ones.span(), {}, 0.0, statistics, y.rows());
  layer_norm_forward<double>(shifted.rows(), ones.span(), {}, 0.0, statistics, far.rows());
  expect_near(elements(far.view()), elements(y.view()), 1e-7);  // an input's own rounding is 1e-9
}

TYPED_TEST(Norm, a_constant_row_gives_the_bias) {
  using S = TypeParam;
  Tape<S> tape;
  Tensor<S> same(Shape{2, 7});
  same.fill(S(3));
  const auto w = tape.constant(random_tensor<S>({7}, 2)), b = tape.constant(random_tensor<S>({7}, 3));
  const auto y = layer_norm(tape.constant(same), w, b);
  expect_near(elements(y.slice(0, 1, 1)), elements(b), 0.0);
}

TYPED_TEST(Norm, gradients_of_layer_norm_are_orthogonal_to_ones_and_to_the_result) {
  using S = TypeParam;
  Tape<S> tape;
  const auto x = tape.variable(random_tensor<S>({1, 50}, 1));
  Tensor<S> ones(Shape{50});
  ones.fill(S(1));
  const auto y = layer_norm(x, tape.constant(ones), {}, 0.0);
  const auto h = elements(y);
  tape.backward(y, random_tensor<S>({1, 50}, 4));
  const auto dx = gradient(x);
  double sum = 0, along = 0;
  for (std::size_t i = 0; i < 50; ++i) sum += static_cast<double>(dx[i]), along += static_cast<double>(dx[i] * h[i]);
  EXPECT_NEAR(sum, 0.0, 10 * this->exact);
  EXPECT_NEAR(along, 0.0, 10 * this->exact);
}

TYPED_TEST(Norm, nan_spoils_its_row_and_no_other) {
  using S = TypeParam;
  Tensor<S> x = random_tensor<S>({2, 20}, 1);
  x[3] = std::numeric_limits<S>::quiet_NaN();
  for (const bool rms : {true, false}) {
    const auto y = run(x, rms).y;
    for (std::size_t i = 0; i < 20; ++i) {
      EXPECT_TRUE(std::isnan(y[i]));
      EXPECT_TRUE(std::isfinite(y[20 + i]));
    }
  }
}

TEST(NormErrors, weights_have_the_width_of_x) {
  Tape<float> tape;
  const auto of = [&](const Shape& shape) { return tape.constant(Tensor<float>(shape)); };
  const auto x = of({2, 3});
  EXPECT_NE(message_of<ShapeError>([&] { rms_norm(x, of({4})); }).find("(3)"), std::string::npos);
  EXPECT_THROW(rms_norm(x, of({1, 3})), ShapeError);
  EXPECT_THROW(layer_norm(x, of({2}), of({3})), ShapeError);
  EXPECT_THROW(layer_norm(x, of({3}), of({4})), ShapeError);
  EXPECT_THROW(layer_norm(of({}), of({1}), {}), ShapeError);
}

}  // namespace
}  // namespace handgrad::test
