#include "handgrad/verify/gradient_check.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <set>
#include <sstream>

#include "handgrad/autograd/output.h"
#include "handgrad/core/errors.h"
#include "handgrad/ops/dropout.h"
#include "handgrad/ops/mul.h"
#include "handgrad/ops/relu.h"
#include "support/gradient_test.h"
#include "support/planted_mistake.h"

// Tests of the checker: correct gradients pass, and every kind of wrong gradient is detected.

namespace handgrad {
namespace {

enum class Fault { none, dropped, nan_middle };

// y = x^3, with a backward pass that can be made wrong.
template <class S>
Var<S> cube(Var<S> x, Fault fault) {
  auto y = output("cube", x.shape(), x);
  const Rows<const S> in = x.rows();
  for (Index i = 0; i < in.cols; ++i) y.data()[i] = in.data[i] * in.data[i] * in.data[i];
  return y.saves(x).on_backward([fault](const auto& saved, auto dy, auto dx) {
    const auto& [x_saved] = saved;
    for (Index i = 0; i < x_saved.shape.size(); ++i) {
      const S v = x_saved.data[i];
      S term = S(3) * v * v * dy.data[i];
      if (fault == Fault::dropped && i == 1) continue;
      if (fault == Fault::nan_middle && i == 3) term = static_cast<S>(std::numeric_limits<double>::quiet_NaN());
      dx.data[i] += term;
    }
  });
}

// y = sin(10^4 x), its slope times a factor.
struct Swing {
  double factor;

  template <class S>
  Var<S> operator()(const Inputs<S>& in) const {
    constexpr double rate = 1e4;
    const Var<S> x = in[0];
    auto y = output("swing", x.shape(), x);
    for (Index i = 0; i < x.size(); ++i) y.data()[i] = std::sin(S(rate) * x.view().data[i]);
    return y.saves(x).on_backward([slope = factor * rate](const auto& saved, auto dy, auto dx) {
      const auto& [kept] = saved;
      for (Index i = 0; i < kept.shape.size(); ++i) {
        dx.data[i] += S(slope) * std::cos(S(rate) * kept.data[i]) * dy.data[i];
      }
    });
  }
};

std::vector<Tensor<double>> operands() { return test::random_operands({{1, 6}}, 4); }

GradientReport check(Fault fault) {
  return check_gradients([fault](auto x) { return cube(x[0], fault); }, operands());
}

TEST(GradientCheck, a_right_gradient_passes) {
  const GradientReport report = check(Fault::none);
  EXPECT_TRUE(report.passed()) << report.worst(6);
  EXPECT_EQ(report.entries.size(), 6u);
  EXPECT_LE(report.worst_complex_error, 1e-15);
}

TEST(GradientCheck, a_nan_fails) { EXPECT_FALSE(check(Fault::nan_middle).passed()); }

GradientReport check_mistake(const std::string& mistake) {
  const auto operands = test::random_operands({{4, 4}, {4, 4}}, 4);
  return check_gradients([&](auto x) { return test::mistaken(x[0], x[1], mistake); }, operands);
}

TEST(GradientCheck, every_planted_mistake_fails) {
  const GradientReport right = check_mistake("");
  EXPECT_TRUE(right.passed()) << right.worst(3);
  for (const auto& mistake : test::planted_mistakes()) {
    EXPECT_FALSE(check_mistake(mistake.what).passed()) << mistake.what;
  }
}

// Every kind of mistake of tools/mutate must also be planted here.
TEST(GradientCheck, every_kind_of_the_mutation_set_is_planted) {
  std::ifstream file(HANDGRAD_SOURCE_DIR "/tools/mutate/operators.py");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const std::string head = "for f in (";
  const std::size_t begin = text.find(head, text.find("OPERATORS = "));
  ASSERT_NE(begin, std::string::npos);
  const std::string list = text.substr(begin + head.size(), text.find(')', begin) - begin - head.size());
  std::set<std::string> kinds, planted;
  for (const auto& mistake : test::planted_mistakes()) planted.insert(mistake.mutation);
  planted.erase("");
  std::istringstream names(list);
  for (std::string name; std::getline(names >> std::ws, name, ',');) kinds.insert(name);
  EXPECT_EQ(planted, kinds);
}

std::string only_violation(const std::string& mistake) {
  const GradientReport report = check_mistake(mistake);
  EXPECT_FALSE(report.passed()) << mistake;
  EXPECT_FALSE(report.violations.empty()) << mistake;
  if (report.violations.empty()) return "";
  EXPECT_TRUE(report.worst(0).starts_with(report.violations[0])) << report.worst(0);
  return report.violations[0];
}

// The operand is used once and starts from 0, so derivatives do not detect it.
TEST(GradientCheck, an_assigned_gradient_is_named) {
  EXPECT_LE(check_mistake("assigned to a").worst_complex_error, 1e-14);
  EXPECT_TRUE(only_violation("assigned to a").starts_with("operand 0: the gradient must be added to the existing one"));
  EXPECT_TRUE(only_violation("assigned to w").starts_with("operand 1: the gradient must be added to the existing one"));
  EXPECT_EQ(check_mistake("assigned to w").violations.size(), 1u);
}

TEST(GradientCheck, what_is_written_to_is_named) {
  EXPECT_EQ(only_violation("operand overwritten"), "mistaken, backward: changed its operand 0");
  EXPECT_EQ(only_violation("operand overwritten in forward"), "operand 1: the values of the parameter changed");
  EXPECT_EQ(only_violation("result overwritten"), "mistaken, backward: changed its own result");
  EXPECT_EQ(only_violation("upstream gradient overwritten"), "mistaken, backward: changed the gradient of its result");
}

// Of several operations, the one between others: its operand is no parameter.
TEST(GradientCheck, an_operation_inside_a_function_is_named) {
  const auto operands = test::random_operands({{3, 3}, {3, 3}}, 4);
  const auto report = check_gradients(
      [](auto x) { return mul(test::mistaken(mul(x[0], x[1]), x[1], "operand overwritten"), x[0]); }, operands);
  ASSERT_FALSE(report.passed());
  EXPECT_EQ(report.violations[0], "mistaken, backward: changed its operand 0");
}

TEST(GradientCheck, the_worst_entry_is_named) {
  const std::string worst = check(Fault::dropped).worst(1);
  EXPECT_NE(worst.find("operand 0[1]: backward 0,"), std::string::npos) << worst;
}

TEST(GradientCheck, a_function_that_is_not_repeatable_is_refused) {
  std::uint64_t calls = 0;
  const auto random = [&calls](auto x) { return dropout(x[0], {0.5, ++calls, 0, 0}); };
  EXPECT_THROW(check_gradients(random, operands()), Error);
}

TEST(GradientCheck, kinks_are_named_and_not_held_against_the_gradient) {
  const std::vector<double> values{-1.0, 1e-4, 0.0, 2.0};
  std::vector<Tensor<double>> x;
  x.emplace_back(Shape{1, 4}, values);
  const GradientReport report = check_gradients([](auto in) { return relu(in[0]); }, x);
  EXPECT_TRUE(report.passed()) << report.worst(4);
  EXPECT_EQ(report.kinks(), (std::vector<std::string>{"operand 0[1]", "operand 0[2]"}));
}

// 1e-4 from the kink of relu a derivative exists. A wrong one is detected, although differences cross the kink.
TEST(GradientCheck, a_wrong_gradient_near_a_kink_fails) {
  std::vector<Tensor<double>> x;
  x.emplace_back(Shape{1, 2}, std::vector<double>{-1.0, 1e-4});
  GradientReport report = check_gradients([](auto in) { return relu(in[0]); }, x);
  ASSERT_TRUE(report.entries[1].kink);
  EXPECT_FALSE(report.entries[1].undefined);
  report.entries[1].value *= 1.001;
  report.compute_errors();
  EXPECT_FALSE(report.passed());
}

// A function that oscillates within the step of the differences looks like a kink. The complex step still proves it.
TEST(GradientCheck, a_wrong_gradient_of_a_function_that_swings_fast_fails) {
  std::vector<Tensor<double>> x;
  x.emplace_back(Shape{1, 4}, std::vector<double>{-1.0, 0.3, 0.7, 2.0});
  const auto check_swing = [&](double factor) { return check_gradients(Swing{factor}, x); };
  EXPECT_EQ(check_swing(1.0).kinks().size(), 4u);
  EXPECT_TRUE(check_swing(1.0).passed()) << check_swing(1.0).worst(4);
  EXPECT_FALSE(check_swing(1.001).passed());
}

TEST(GradientCheck, what_would_check_nothing_is_refused) {
  const auto f = [](auto in) { return relu(in[0]); };
  EXPECT_THROW(check_gradients(f, operands(), {.entries = 0}), RangeError);
  EXPECT_THROW(check_gradients(f, std::span<const Tensor<double>>{}), RangeError);
  EXPECT_THROW(check_gradients([](auto in) { return relu(in[-1]); }, operands()), RangeError);
}

// x^3 at 1 in float by a central difference is wrong in the fifth digit at best; in double it is exact enough.
TEST(GradientCheck, float_differences_mislead_and_the_checker_uses_double) {
  const auto slope = [](auto h) {
    using T = decltype(h);
    const T up = (T(1) + h) * (T(1) + h) * (T(1) + h), down = (T(1) - h) * (T(1) - h) * (T(1) - h);
    return static_cast<double>((up - down) / (T(2) * h));
  };
  EXPECT_GT(std::abs(slope(1e-6f) - 3.0), 1e-3);
  EXPECT_LT(std::abs(slope(1e-5) - 3.0), 1e-9);
}

}  // namespace
}  // namespace handgrad
