#include "handgrad/ops/ops.h"
#include "support/values.h"

namespace handgrad::test {
namespace {

template <class S>
Tensor<S> ones(const Shape& shape) {
  Tensor<S> x(shape);
  x.fill(S(1));
  return x;
}

TEST(Dropout, keeps_the_mean) {
  for (const double p : {0.01, 0.1, 0.5, 0.9}) {
    Tape<float> tape(false);
    const auto y = elements(dropout(tape.constant(ones<float>({500, 401})), {p, 1, 2, 0}));
    double total = 0, dropped = 0;
    for (const float v : y) {
      ASSERT_TRUE(v == 0.0f || v == static_cast<float>(1 / (1 - p)));
      total += static_cast<double>(v), dropped += v == 0.0f;
    }
    const double n = static_cast<double>(y.size());
    EXPECT_NEAR(dropped / n, p, 5 * std::sqrt(p * (1 - p) / n));
    EXPECT_NEAR(total / n, 1.0, 5 * std::sqrt(p / (1 - p) / n));
  }
}

TEST(Dropout, is_the_same_however_rows_are_split) {
  const Tensor<float> x = random_tensor<float>({12, 7}, 1);
  DropoutMask mask{0.4, 3, 5, 100};
  Tape<float> tape(false);
  const auto whole = dropout(tape.constant(x), mask), values = tape.constant(x);
  for (const Index rows : {1, 4, 6}) {
    for (Index first = 0; first < 12; first += rows) {
      mask.first_row = 100 + static_cast<std::uint64_t>(first);
      EXPECT_TRUE(
          same_bits(elements(dropout(values.slice(0, first, rows), mask)), elements(whole.slice(0, first, rows))));
    }
  }
}

TEST(Dropout, differs_between_seeds_sites_and_rows) {
  Tape<float> tape(false);
  const auto x = tape.constant(ones<float>({4, 50}));
  const auto of = [&](DropoutMask mask) { return elements(dropout(x, mask)); };
  const auto base = of({0.5, 1, 2, 0});
  EXPECT_EQ(of({0.5, 1, 2, 0}), base);
  EXPECT_NE(of({0.5, 2, 2, 0}), base);
  EXPECT_NE(of({0.5, 1, 3, 0}), base);
  EXPECT_NE(of({0.5, 1, 2, 4}), base);
  EXPECT_NE(elements(dropout(x, {0.5, 1, 2, 0}).slice(0, 0, 1)), elements(dropout(x, {0.5, 1, 2, 0}).slice(0, 1, 1)));
}

TEST(Dropout, backward_drops_what_forward_dropped) {
  Tape<double> tape;
  const auto x = tape.variable(ones<double>({5, 9}));
  const auto y = dropout(x, {0.3, 1, 2, 3});
  const auto kept = elements(y);
  tape.backward(y, ones<double>({5, 9}));
  EXPECT_EQ(gradient(x), kept);
}

TEST(Dropout, of_probability_zero_is_x_itself) {
  Tape<float> tape;
  const auto x = tape.variable(ones<float>({2, 2}));
  EXPECT_EQ(dropout(x, {}).id(), x.id());
  EXPECT_EQ(tape.nodes(), 1);
}

TEST(Dropout, passes_nan_on_where_it_is_kept) {
  Tape<float> tape(false);
  Tensor<float> x(Shape{3, 40});
  x.fill(std::nanf(""));
  for (const float v : elements(dropout(tape.constant(x), {0.5, 1, 2, 0}))) EXPECT_TRUE(std::isnan(v) || v == 0.0f);
}

TEST(Dropout, probabilities_outside_are_refused) {
  Tape<float> tape;
  const auto x = tape.constant(ones<float>({2, 2}));
  for (const double p : {1.0, -0.1, 1.5, std::nan("")}) EXPECT_THROW(dropout(x, {.probability = p}), RangeError) << p;
}

}  // namespace
}  // namespace handgrad::test
