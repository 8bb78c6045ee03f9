#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "handgrad/autograd/tape.h"
#include "handgrad/core/random.h"
#include "handgrad/core/tensor.h"

namespace handgrad {

/// The operands of a function under test, as Vars of any scalar.
template <class S>
class Inputs {
 public:
  Inputs(Tape<S>& tape, const ParameterStore<S>& store) : tape_(tape), store_(store) {}
  /// Operand i; asked for twice, it is used twice.
  Var<S> operator[](int i) const { return tape_.parameter(store_, i); }
  Tape<S>& tape() const { return tape_; }

 private:
  Tape<S>& tape_;
  const ParameterStore<S>& store_;
};

struct GradientCheckOptions {
  Index entries = 200;          ///< At most so many entries of each operand, drawn at random; all if there are fewer.
  double complex_step = 1e-30;
  double difference_step = 1e-5;
  std::uint64_t seed = 1;       ///< Of the weights w and of the entries drawn.
};

/// One entry of one gradient, beside what it was compared with.
struct GradientEntry {
  std::string tensor;
  Index index = 0;
  double value = 0.0;         ///< By the backward pass.
  double complex_step = 0.0;  ///< Im f(x + ih) / h.
  double difference = 0.0;    ///< (f(x + h) - f(x - h)) / 2h.
  double complex_error = 0.0;
  double difference_error = 0.0;
};

/// What a check found. Error of an entry = |a - c| / max(largest gradient of its tensor, 1e-6 x the largest over all).
struct GradientReport {
  std::vector<GradientEntry> entries;
  double worst_complex_error = 0.0;
  double worst_difference_error = 0.0;
  /// The same relative to the entry itself, over entries above 1e-4 of their tensor's largest.
  double worst_relative_complex_error = 0.0;
  double worst_relative_difference_error = 0.0;

  /// Fills the errors from the values.
  void judge();
  /// The `count` worst entries, one a line.
  std::string worst(std::size_t count) const;
};

namespace detail {

template <class S>
ParameterStore<S> store_of(std::span<const Tensor<double>> operands) {
  ParameterStore<S> store;
  for (std::size_t i = 0; i < operands.size(); ++i) store.add("operand " + std::to_string(i), operands[i].shape());
  store.allocate();
  for (std::size_t i = 0; i < operands.size(); ++i) {
    S* to = store.mutable_values() + store.parameter(static_cast<int>(i)).offset;
    for (Index j = 0; j < operands[i].size(); ++j) to[j] = static_cast<S>(operands[i][j]);
  }
  return store;
}

/// <f, w> with w a function of the seed.
template <class S, class F>
S weighted_value(F& f, const ParameterStore<S>& store, std::uint64_t seed) {
  Tape<S> tape(false);
  tape.poison_memory();
  const Var<S> y = f(Inputs<S>(tape, store));
  const View<const S> values = y.view();
  const Random random(seed, Stream::audit);
  S sum{};
  for (Index i = 0; i < y.size(); ++i) sum += values.data[i] * S(random.normal(static_cast<std::uint64_t>(i)));
  return sum;
}

/// Gradient of <f, w> by the backward pass, added to what stands in the store.
template <class S, class F>
void add_gradient(F& f, const ParameterStore<S>& store, std::uint64_t seed) {
  Tape<S> tape;
  tape.poison_memory();
  const Var<S> y = f(Inputs<S>(tape, store));
  const Random random(seed, Stream::audit);
  Tensor<S> weights(y.shape());
  for (Index i = 0; i < y.size(); ++i) weights[i] = static_cast<S>(random.normal(static_cast<std::uint64_t>(i)));
  tape.backward(y, weights);
}

/// Which entries of a tensor of that size are looked at: all, or `wanted` different ones.
std::vector<Index> entries_to_check(Index size, Index wanted, const Random& random);

}  // namespace detail

/// Checks the backward pass of f, a function of Inputs<S> for any scalar S that returns a dense Var<S>, at the given
/// operands: in double, against the complex step and against central differences of <f, w> with random w.
template <class F>
GradientReport check_gradients(F f, std::span<const Tensor<double>> operands, const GradientCheckOptions& options = {}) {
  auto real = detail::store_of<double>(operands);
  auto complex = detail::store_of<std::complex<double>>(operands);
  real.allocate_gradients();
  detail::add_gradient(f, real, options.seed);
  GradientReport report;
  for (const Parameter& p : real.parameters()) {
    const Random draw(options.seed, Stream::audit, static_cast<std::uint32_t>(p.offset) + 1);
    for (const Index i : detail::entries_to_check(p.shape.size(), options.entries, draw)) {
      const Index at = p.offset + i;
      GradientEntry entry{p.name, i, real.gradients()[at], 0, 0, 0, 0};
      const double x = real.values()[at];
      complex.mutable_values()[at] = {x, options.complex_step};
      entry.complex_step = detail::weighted_value(f, complex, options.seed).imag() / options.complex_step;
      complex.mutable_values()[at] = x;
      const double h = options.difference_step * std::max(1.0, std::abs(x));
      real.mutable_values()[at] = x + h;
      const double above = detail::weighted_value(f, real, options.seed);
      real.mutable_values()[at] = x - h;
      const double below = detail::weighted_value(f, real, options.seed);
      real.mutable_values()[at] = x;
      entry.difference = (above - below) / (2.0 * h);
      report.entries.push_back(entry);
    }
  }
  report.judge();
  return report;
}

}  // namespace handgrad
