#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "core/math.h"
#include "handgrad/core/parallel.h"
#include "handgrad/core/random.h"
#include "handgrad/verify/gradient_check.h"
#include "support/nonfinite_absorbers.h"

namespace handgrad::test {

/// Operands of these shapes, standard normal times `spread`.
inline std::vector<Tensor<double>> random_operands(const std::vector<Shape>& shapes, std::uint64_t seed,
                                                   double spread = 1.0) {
  std::vector<Tensor<double>> operands;
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    operands.emplace_back(shapes[i]);
    const Random random(seed, Stream::initial_weights, static_cast<std::uint32_t>(i));
    // Rounded to float, so that all scalars start from the same numbers.
    for (Index j = 0; j < operands[i].size(); ++j) {
      operands[i][j] = static_cast<float>(spread * random.normal(static_cast<std::uint64_t>(j)));
    }
  }
  return operands;
}

/// Compares float with double: the relative L2 error of every gradient; and the bits for 1, 2 and 3 threads.
template <class F>
void check_float(F f, std::span<const Tensor<double>> operands, double tolerance) {
  OperandFunction<double, F&> exact(f, operands, 1);
  verify::add_gradient(exact);
  std::unique_ptr<OperandFunction<float, F&>> first;
  for (const int threads : {1, 2, 3}) {
    const ThreadScope scope(threads);
    auto in_float = std::make_unique<OperandFunction<float, F&>>(f, operands, 1);
    verify::add_gradient(*in_float);
    if (!first) first = std::move(in_float);
    if (!in_float) continue;
    const auto bytes = static_cast<std::size_t>(first->store().flat_size()) * sizeof(float);
    EXPECT_EQ(std::memcmp(in_float->store().gradients(), first->store().gradients(), bytes), 0)
        << "bits differ between 1 and " << threads << " threads";
  }
  for (const auto& [tensor, error] : verify::float_gradient_errors(first->store(), exact.store())) {
    EXPECT_LE(error, tolerance) << tensor << " in float";
  }
}

/// Expects every error of a report to be within its limit, and no rule to be broken.
inline void expect_proven(const GradientReport& report, const GradientTolerances& limits) {
  EXPECT_LE(report.worst_complex_error, limits.complex_step) << report.worst(10);
  EXPECT_LE(report.worst_difference_error, limits.differences) << report.worst(10);
  EXPECT_LE(report.worst_relative_complex_error, limits.relative_complex_step) << report.worst(10);
  EXPECT_LE(report.worst_relative_difference_error, limits.relative_differences) << report.worst(10);
  EXPECT_TRUE(report.violations.empty()) << report.worst(0);
  ::testing::Test::RecordProperty("worst_complex_step_error",
                                  std::to_string(report.worst_complex_error * 1e15) + "e-15");
}

template <class F>
void run_gradient_test(F f, std::span<const Tensor<double>> operands,
                       const GradientTolerances& limits = operation_tolerances) {
  Index size = 0;
  for (const Tensor<double>& operand : operands) size += operand.size();
  expect_proven(check_gradients(f, operands, {.entries = size < 3000 ? 200 : 10}), limits);
  check_float(f, operands, limits.in_float);
}

/// The value and all gradients, in one row.
template <class S>
std::vector<S> value_and_gradients(verify::Subject<S>& subject) {
  subject.store().zero_gradients();
  std::vector<S> all = verify::evaluate(subject);
  verify::add_gradient(subject);
  all.insert(all.end(), subject.store().gradients(), subject.store().gradients() + subject.store().flat_size());
  return all;
}

template <class S, class F>
void expect_shows_nonfinite_in(F f, std::span<const Tensor<double>> operands, const std::string& name) {
  OperandFunction<S, F&> subject(f, operands, 1);
  ParameterStore<S>& store = subject.store();
  if (store.scalar_count() > 700) return;
  store.allocate_gradients();
  const ThreadScope one(1);
  const auto with = [&](Index at, S value) {
    const S kept = std::exchange(store.mutable_values()[at], value);
    auto all = value_and_gradients(subject);
    store.mutable_values()[at] = kept;
    return all;
  };
  const auto untouched = value_and_gradients(subject);
  for (const double planted : {std::nan(""), HUGE_VAL, -HUGE_VAL}) {
    std::string absorbed;
    for (const Parameter& p : store.parameters()) {
      for (Index i = p.offset; i < p.offset + p.shape.size(); ++i) {
        const auto all = with(i, static_cast<S>(planted));
        if (!std::all_of(all.begin(), all.end(), [](S v) { return is_finite(v); })) continue;
        const std::string place = p.name + "[" + std::to_string(i - p.offset) + "]";
        absorbed += place + " ";
        // NaN and +infinity are absorbed only where no number is read, so another number must change nothing either.
        if (planted < 0) continue;
        EXPECT_EQ(with(i, store.values()[i] + S(1)), untouched) << name << " hides " << planted << " in " << place;
      }
    }
    const std::string reason = why_absorbed(name, planted);
    if (reason.empty()) {
      EXPECT_EQ(absorbed, "") << name << " hides " << planted;
    } else {
      EXPECT_NE(absorbed, "") << name << " is said to absorb " << planted << ": " << reason;
    }
  }
}

/// Plants NaN and both infinities in every element of every operand: it must appear in the value or in a gradient,
/// or the case must be listed in nonfinite_absorbers.h. In float, which has elementary functions of its own, and in
/// double. Large cases are skipped.
template <class F>
void expect_shows_nonfinite(F f, std::span<const Tensor<double>> operands, const std::string& name) {
  {
    SCOPED_TRACE("in float");
    expect_shows_nonfinite_in<float>(f, operands, name);
  }
  expect_shows_nonfinite_in<double>(f, operands, name);
}

/// shapes({2, 3}, {3}): one shape for each operand.
inline std::vector<Shape> shapes(std::initializer_list<Shape> list) { return list; }

}  // namespace handgrad::test

/// One line per operation and variant: GRADIENT_TEST(rope, adjacent, shapes({{2, 3, 2, 4}}), [](auto x) { ... x[0] ...
/// })
#define GRADIENT_TEST(operation, variant, operand_shapes, ...)              \
  TEST(Gradient, operation##_##variant) {                                   \
    using namespace handgrad;                                               \
    using namespace handgrad::test;                                         \
    const auto operands = random_operands(operand_shapes, 11);              \
    run_gradient_test(__VA_ARGS__, operands);                               \
  }                                                                         \
  TEST(NonFiniteOperand, operation##_##variant) {                           \
    using namespace handgrad;                                               \
    using namespace handgrad::test;                                         \
    const auto operands = random_operands(operand_shapes, 11);              \
    expect_shows_nonfinite(__VA_ARGS__, operands, #operation "_" #variant); \
  }
