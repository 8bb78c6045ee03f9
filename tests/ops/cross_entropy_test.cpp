#include <limits>

#include "handgrad/ops/ops.h"
#include "support/message.h"
#include "support/values.h"

namespace handgrad::test {
namespace {

using test::message_of;
constexpr double infinity = std::numeric_limits<double>::infinity();

struct Result {
  double loss;
  std::vector<double> gradient;
};

template <class S>
Result outcome(Tape<S>& tape, const Var<S>& x, const Var<S>& loss) {
  tape.backward(loss);
  const std::vector<S> g = gradient(x);
  return {static_cast<double>(loss.item()), std::vector<double>(g.begin(), g.end())};
}

template <class S>
Var<S> row(Tape<S>& tape, const std::vector<double>& logits) {
  Tensor<S> x(Shape{1, static_cast<Index>(logits.size())});
  for (Index i = 0; i < x.size(); ++i) x[i] = static_cast<S>(logits[static_cast<std::size_t>(i)]);
  return tape.variable(x);
}

template <class S>
Result fused(const std::vector<double>& logits, TokenId target, LossOptions options = {}) {
  Tape<S> tape;
  const auto x = row(tape, logits);
  const std::vector<TokenId> targets{target};
  return outcome(tape, x, cross_entropy(x, targets, options));
}

// The same by log_softmax and the negative of the target's element.
template <class S>
Result composed(const std::vector<double>& logits, TokenId target) {
  Tape<S> tape;
  const auto x = row(tape, logits);
  return outcome(tape, x, scale(log_softmax(x).slice(1, target, 1), -1.0));
}

// The same as the head of a model: logits = x W^T with x = (1).
template <class S>
Result through_head(const std::vector<double>& logits, TokenId target, Index budget) {
  Tape<S> tape;
  const auto w = row(tape, logits);
  const auto x = tape.constant(Tensor<S>({1, 1}, {S(1)}));
  const std::vector<TokenId> targets{target};
  const LossOptions options{.logits_budget_bytes = budget};
  return outcome(tape, w, linear_cross_entropy(x, w.reshape(Shape{w.extent(1), 1}), targets, options));
}

template <class S>
class CrossEntropy : public ::testing::Test {
 public:
  static void expect(const std::vector<double>& logits, TokenId target, double loss, const std::vector<double>& dx) {
    const double exact = std::is_same_v<S, float> ? 1e-6 : 1e-9;
    for (const Result& r : {fused<S>(logits, target), composed<S>(logits, target), through_head<S>(logits, target, 0),
                            through_head<S>(logits, target, 1 << 20)}) {
      if (std::isinf(loss)) {
        EXPECT_EQ(r.loss, loss);
      } else {
        EXPECT_NEAR(r.loss, loss, exact * std::max(1.0, std::abs(loss)));
      }
      expect_near(r.gradient, dx, exact, "gradient");
    }
  }
};
using Scalars = ::testing::Types<float, double>;
TYPED_TEST_SUITE(CrossEntropy, Scalars);

TYPED_TEST(CrossEntropy, is_right_for_large_logits) {
  for (const double c : {1.0, 1e4, 1e6, 1e8, 1e30}) this->expect({c, c}, 0, 0.6931471806, {-0.5, 0.5});
  for (const double c : {0.0, 1.0, 1e2, 1e4}) {
    this->expect({2 + c, -1 + c}, 0, 0.0485873516, {-0.0474258732, 0.0474258732});
  }
  this->expect({1e30, -1e30, 0}, 0, 0.0, {0, 0, 0});
  this->expect({1e30, -1e30, 0}, 1, 2e30, {1, -1, 0});
}

TYPED_TEST(CrossEntropy, does_not_divide_by_an_underflowed_probability) {
  this->expect({-431, 279, 427}, 0, 858.0, {-1, 0, 1});
  if (std::is_same_v<TypeParam, double>) {
    EXPECT_NEAR(fused<double>({-431, 279, 427}, 0).gradient[1] / 5.30e-65, 1.0, 1e-3);
    EXPECT_NEAR(composed<double>({-431, 279, 427}, 0).gradient[1] / 5.30e-65, 1.0, 1e-3);
  } else {
    EXPECT_EQ(fused<float>({-431, 279, 427}, 0).gradient[1], 0.0);
  }
}

TEST(CrossEntropyInFloat, a_difference_that_overflows_has_a_gradient) {
  for (const Result& r : {fused<float>({3e38, -3e38}, 1), composed<float>({3e38, -3e38}, 1),
                          through_head<float>({3e38, -3e38}, 1, 0), through_head<float>({3e38, -3e38}, 1, 1 << 20)}) {
    EXPECT_EQ(r.loss, infinity);
    EXPECT_EQ(r.gradient, (std::vector<double>{1, -1}));
  }
}

TYPED_TEST(CrossEntropy, spreads_the_smoothing_over_all_classes) {
  using S = TypeParam;
  const Result r = fused<S>({2, 1, 0}, 0, {.label_smoothing = 0.1});
  EXPECT_NEAR(r.loss, 0.5076059644, 2e-7);
  expect_near(r.gradient, std::vector<double>{-0.2680923776, 0.2113951377, 0.0566972398}, 1e-7);
}

TYPED_TEST(CrossEntropy, a_class_of_minus_infinity_takes_no_part) {
  using S = TypeParam;
  this->expect({-infinity, 0}, 1, 0.0, {0, 0});
  const Result smoothed = fused<S>({-infinity, 0}, 1, {.label_smoothing = 0.1});
  EXPECT_EQ(smoothed.loss, infinity);
  expect_near(smoothed.gradient, std::vector<double>{-0.05, 0.05}, 1e-7);
  EXPECT_EQ(fused<S>({-infinity, 0}, 0).loss, infinity);
}

TYPED_TEST(CrossEntropy, passes_nan_on) {
  const Result r = fused<TypeParam>({1, std::nan(""), 0}, 0);
  EXPECT_TRUE(std::isnan(r.loss));
  EXPECT_TRUE(std::isnan(r.gradient[0]));
}

TYPED_TEST(CrossEntropy, without_a_valid_target_it_is_zero) {
  using S = TypeParam;
  const std::vector<TokenId> ignored(4, -100), one{-100, 2, -100, -100};
  const Tensor<S> logits = random_tensor<S>({4, 5}, 1), other = random_tensor<S>({4, 5}, 2);
  ParameterStore<S> store;
  store.add("bias", Shape{5});
  store.allocate();
  store.allocate_gradients();
  LossSum report;
  const auto step = [&](const Tensor<S>& x, const std::vector<TokenId>& targets) {
    Tape<S> tape;
    const auto y = cross_entropy(add(tape.constant(x), tape.parameter(store, 0)), targets, {.report = &report});
    tape.backward(y);
    return y.item();
  };
  EXPECT_EQ(step(logits, ignored), S(0));
  for (Index i = 0; i < 5; ++i) EXPECT_EQ(store.gradients()[i], S(0));
  EXPECT_EQ(report.targets, 0);
  EXPECT_EQ(report.mean(), 0.0);
  const S loss = step(other, one);
  EXPECT_EQ(report.targets, 1);
  EXPECT_NEAR(report.mean(), static_cast<double>(loss), 1e-6);
  const std::vector<S> both(store.gradients(), store.gradients() + 5);
  store.zero_gradients();
  step(other, one);  // alone
  EXPECT_TRUE(same_bits(both, std::vector<S>(store.gradients(), store.gradients() + 5)));

  Tape<S> tape;
  const auto x = tape.variable(logits), w = tape.variable(random_tensor<S>({7, 5}, 3));
  const auto y = linear_cross_entropy(x, w, ignored);
  tape.backward(y);
  EXPECT_EQ(y.item(), S(0));
  for (const S g : gradient(w)) EXPECT_EQ(g, S(0));
}

TYPED_TEST(CrossEntropy, ignored_rows_are_not_read) {
  using S = TypeParam;
  Tape<S> tape;
  const S nan = std::numeric_limits<S>::quiet_NaN();
  const auto x = tape.variable(Tensor<S>({2, 2}, {nan, nan, S(0), S(0)}));
  const std::vector<TokenId> targets{-100, 1};
  const auto y = cross_entropy(x, targets);
  tape.backward(y);
  EXPECT_NEAR(static_cast<double>(y.item()), 0.6931471806, 1e-6);
  expect_near(gradient(x), std::vector<double>{0, 0, 0.5, -0.5}, 1e-7);
}

TYPED_TEST(CrossEntropy, weighs_micro_batches_by_valid_targets) {
  using S = TypeParam;
  const Tensor<S> x = random_tensor<S>({4, 5}, 1);
  const std::vector<TokenId> targets{1, -100, 4, 0};
  Tape<S> tape;
  const auto whole = tape.variable(x);
  const auto y = cross_entropy(whole, targets);
  tape.backward(y);
  Tape<S> parts;
  const auto z = parts.variable(x);
  const auto split = add(cross_entropy(z.slice(0, 0, 2), std::span(targets).first(2), {.divisor = 3}),
                         cross_entropy(z.slice(0, 2, 2), std::span(targets).last(2), {.divisor = 3}));
  parts.backward(split);
  EXPECT_NEAR(static_cast<double>(split.item()), static_cast<double>(y.item()), 1e-6);
  expect_near(gradient(z), gradient(whole), 1e-7);
}

TEST(CrossEntropyErrors, label_smoothing_lies_between_0_and_1) {
  Tape<double> tape;
  const std::vector<TokenId> targets{1};
  for (const double smoothing : {-0.1, 1.1, std::numeric_limits<double>::quiet_NaN()}) {
    EXPECT_THROW(cross_entropy(row(tape, {0, 1, 2}), targets, {.label_smoothing = smoothing}), RangeError);
  }
}

TEST(CrossEntropyErrors, a_label_outside_is_named_with_row_value_and_classes) {
  Tape<double> tape;
  const auto x = tape.constant(random_tensor<double>({3, 5}, 1)), w = tape.constant(random_tensor<double>({5, 5}, 2));
  const auto both = [&](const std::vector<TokenId>& targets, const std::string& message) {
    EXPECT_EQ(message_of<RangeError>([&] { cross_entropy(x, targets); }), "cross_entropy: " + message);
    EXPECT_EQ(message_of<RangeError>([&] { linear_cross_entropy(x, w, targets); }), "linear_cross_entropy: " + message);
  };
  both({1, -4, 2}, "target -4 in row 1 is outside [0, 5)");
  both({1, 5, 2}, "target 5 in row 1 is outside [0, 5)");
  both({1, INT32_MAX, 2}, "target 2147483647 in row 1 is outside [0, 5)");
  both({INT32_MIN, 1, 2}, "target -2147483648 in row 0 is outside [0, 5)");
  EXPECT_NO_THROW(cross_entropy(x, std::vector<TokenId>{1, -100, 2}));
  EXPECT_NO_THROW(cross_entropy(x, std::vector<TokenId>{1, -1, 2}, {.ignore = -1}));
  EXPECT_THROW(cross_entropy(x, std::vector<TokenId>{1, -100, 2}, {.ignore = -1}), RangeError);
  EXPECT_THROW(cross_entropy(x, std::vector<TokenId>{1, 2}), ShapeError);
  EXPECT_THROW(linear_cross_entropy(x, w, std::vector<TokenId>{1, 2}), ShapeError);
}

// Head and loss in one operation equal the two operations; stored logits equal recomputed ones.
template <class S>
struct HeadRun {
  S loss;
  std::vector<S> dx, dw;
};

template <class S>
HeadRun<S> head_run(const Tensor<S>& x, const Tensor<S>& w, std::span<const TokenId> targets, LossOptions options,
                    bool in_one) {
  Tape<S> tape;
  tape.poison_memory();
  const auto vx = tape.variable(x), vw = tape.variable(w);
  const auto y =
      in_one ? linear_cross_entropy(vx, vw, targets, options) : cross_entropy(linear(vx, vw, {}), targets, options);
  tape.backward(y);
  return {y.item(), gradient(vx), gradient(vw)};
}

TYPED_TEST(CrossEntropy, with_the_head_is_linear_and_then_the_loss) {
  using S = TypeParam;
  const Tensor<S> x = random_tensor<S>({2, 300, 6}, 1), w = random_tensor<S>({11, 6}, 2);
  std::vector<TokenId> targets;
  for (Index i = 0; i < 600; ++i) targets.push_back(i % 7 == 3 ? -100 : static_cast<TokenId>(i % 11));
  const double tolerance = std::is_same_v<S, float> ? 3e-6 : 1e-13;
  for (const double smoothing : {0.0, 0.1}) {
    LossOptions options{.label_smoothing = smoothing};
    const HeadRun<S> two = head_run(x, w, targets, options, false), kept = head_run(x, w, targets, options, true);
    EXPECT_NEAR(static_cast<double>(kept.loss), static_cast<double>(two.loss), tolerance);
    expect_close(kept.dx, two.dx, tolerance);
    expect_close(kept.dw, two.dw, tolerance);
    options.logits_budget_bytes = 0;
    const HeadRun<S> again = head_run(x, w, targets, options, true);
    EXPECT_EQ(again.loss, kept.loss);
    EXPECT_TRUE(same_bits(again.dx, kept.dx));
    EXPECT_TRUE(same_bits(again.dw, kept.dw));
    options.slab_rows = 7;
    const HeadRun<S> slabs = head_run(x, w, targets, options, true);
    expect_close(slabs.dx, two.dx, tolerance);
    expect_close(slabs.dw, two.dw, tolerance);
  }
}

// The pool grows by the held logits, of all rows or of one slab, up to its granularity.
TYPED_TEST(CrossEntropy, logits_are_held_up_to_the_budget_and_else_a_slab_at_a_time) {
  using S = TypeParam;
  const Index rows = 512, classes = 1000, all_bytes = rows * classes * static_cast<Index>(sizeof(S));
  const Tensor<S> x = random_tensor<S>({2, rows / 2, 3}, 1), w = random_tensor<S>({classes, 3}, 2);
  const std::vector<TokenId> targets(static_cast<std::size_t>(rows), 5);
  const auto held_bytes = [&](LossOptions options) {
    Tape<S> tape;
    linear_cross_entropy(tape.variable(x), tape.variable(w), targets, options);
    return tape.pool_bytes();
  };
  EXPECT_GE(held_bytes({.logits_budget_bytes = all_bytes}), all_bytes);
  const Index slab = held_bytes({.logits_budget_bytes = all_bytes - 1});
  EXPECT_LT(slab, all_bytes);
  EXPECT_GE(slab, all_bytes / 2);  // a block of 256 rows
  EXPECT_LT(held_bytes({.logits_budget_bytes = 0, .slab_rows = 4}), all_bytes / 10);
}

}  // namespace
}  // namespace handgrad::test
