#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>
#include <vector>

#include "core/math.h"
#include "handgrad/core/parallel.h"
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

/// float against double: relative L2 error of every gradient; the same bits for 1, 2 and 3 threads.
template <class F>
void check_float(F f, std::span<const Tensor<double>> operands, double tolerance) {
  auto exact = detail::store_of<double>(operands);
  exact.allocate_gradients();
  detail::add_gradient(f, exact, 1);
  std::vector<float> first;
  for (const int threads : {1, 2, 3}) {
    const ThreadScope scope(threads);
    auto store = detail::store_of<float>(operands);
    store.allocate_gradients();
    detail::add_gradient(f, store, 1);
    const std::vector<float> bits(store.gradients(), store.gradients() + store.flat_size());
    if (first.empty()) first = bits;
    EXPECT_EQ(std::memcmp(bits.data(), first.data(), bits.size() * sizeof(float)), 0)
        << "bits differ between 1 and " << threads << " threads";
  }
  double largest = 0.0;
  for (Index i = 0; i < exact.flat_size(); ++i) largest = std::max(largest, std::abs(exact.gradients()[i]));
  for (const Parameter& p : exact.parameters()) {
    double error = 0.0, size = 0.0;
    for (Index i = p.offset; i < p.offset + p.shape.size(); ++i) {
      const double g = exact.gradients()[i], difference = static_cast<double>(first[static_cast<std::size_t>(i)]) - g;
      error += difference * difference;
      size += g * g;
    }
    const double floor = 1e-6 * largest * std::sqrt(static_cast<double>(p.shape.size()));
    EXPECT_LE(std::sqrt(error), tolerance * std::max(std::sqrt(size), floor)) << p.name << " in float";
  }
}

struct GradientTolerance {
  double complex_step = 1e-12;
  double differences = 1e-7;
  double float_l2 = 5e-6;
};

template <class F>
void run_gradient_test(F f, std::span<const Tensor<double>> operands, GradientTolerance tolerance = {}) {
  Index size = 0;
  for (const Tensor<double>& operand : operands) size += operand.size();
  const GradientReport report = check_gradients(f, operands, {.entries = size < 3000 ? 200 : 10});
  EXPECT_LE(report.worst_complex_error, tolerance.complex_step) << report.worst(10);
  EXPECT_LE(report.worst_difference_error, tolerance.differences) << report.worst(10);
  EXPECT_LE(report.worst_relative_complex_error, 1e-9) << report.worst(10);
  EXPECT_LE(report.worst_relative_difference_error, 1e-7) << report.worst(10);
  ::testing::Test::RecordProperty("worst_complex_step_error",
                                  std::to_string(report.worst_complex_error * 1e15) + "e-15");
  EXPECT_TRUE(report.violations.empty()) << report.worst(0);
  check_float(f, operands, tolerance.float_l2);
}

/// The value of f and all gradients, in one row.
template <class S, class F>
std::vector<S> value_and_gradients(F f, ParameterStore<S>& store) {
  store.zero_gradients();
  std::vector<S> all = detail::value_of(f, store);
  detail::add_gradient(f, store, 1);
  all.insert(all.end(), store.gradients(), store.gradients() + store.flat_size());
  return all;
}

template <class S, class F>
void expect_shows_nonfinite_in(F f, std::span<const Tensor<double>> operands, const std::string& name) {
  auto store = detail::store_of<S>(operands);
  if (store.scalar_count() > 700) return;
  store.allocate_gradients();
  const ThreadScope one(1);
  const auto with = [&](Index at, S value) {
    const S kept = std::exchange(store.mutable_values()[at], value);
    auto all = value_and_gradients<S>(f, store);
    store.mutable_values()[at] = kept;
    return all;
  };
  const auto untouched = value_and_gradients<S>(f, store);
  for (const double planted : {std::nan(""), HUGE_VAL, -HUGE_VAL}) {
    std::string absorbed;
    for (const Parameter& p : store.parameters()) {
      for (Index i = p.offset; i < p.offset + p.shape.size(); ++i) {
        const auto all = with(i, static_cast<S>(planted));
        if (!std::all_of(all.begin(), all.end(), [](S v) { return is_finite(v); })) continue;
        const std::string place = p.name + "[" + std::to_string(i - p.offset) + "]";
        absorbed += place + " ";
        // What is not -infinity is absorbed only where no number is read: there another number changes nothing, either.
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

/// Plants NaN and both infinities in every element of every operand: the value or a gradient must show it, or the case
/// must be one of those where something legitimately absorbs it (nonfinite_absorbers.h). In float, which trains and has
/// leaves of its own, and in double. Large cases are left out.
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

/// One line an operation and variant: GRADIENT_TEST(rope, adjacent, shapes({{2, 3, 2, 4}}), [](auto x) { ... x[0] ...
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
