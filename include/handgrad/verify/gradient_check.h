#pragma once

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "handgrad/autograd/tape.h"
#include "handgrad/core/parallel.h"
#include "handgrad/core/random.h"
#include "handgrad/core/tensor.h"
#include "handgrad/verify/added_gradient.h"
#include "handgrad/verify/operand_watch.h"

namespace handgrad {

namespace detail {
/// Throws RangeError unless 0 <= i < count.
void require_operand(int i, int count);
}  // namespace detail

/// The operands of a function under test, as Vars of any scalar.
template <class S>
class Inputs {
 public:
  Inputs(Tape<S>& tape, const ParameterStore<S>& store) : tape_(tape), store_(store) {}
  /// Operand i; asked for twice, it is used twice. Throws RangeError if there is none of that number.
  Var<S> operator[](int i) const {
    detail::require_operand(i, static_cast<int>(store_.parameters().size()));
    return tape_.parameter(store_, i);
  }
  Tape<S>& tape() const { return tape_; }

 private:
  Tape<S>& tape_;
  const ParameterStore<S>& store_;
};

struct GradientCheckOptions {
  Index entries =
      200;  ///< At most so many entries of each operand, 1 or more, drawn at random; all if there are fewer.
  double complex_step = 1e-30;
  double difference_step = 1e-3;  ///< Times max(1, |x|); the rule is of fourth order.
  std::uint64_t seed = 1;         ///< Of the weights w and of the entries drawn.
};

/// One entry of one gradient, beside what it was compared with.
struct GradientEntry {
  std::string tensor;
  Index index = 0;
  double value = 0.0;         ///< By the backward pass.
  double complex_step = 0.0;  ///< Im f(x + ih) / h.
  double difference = 0.0;    ///< (8 (f(x + h) - f(x - h)) - (f(x + 2h) - f(x - 2h))) / 12h.
  double complex_error = 0.0;
  double difference_error = 0.0;
  bool kink = false;       ///< The function bends within reach of the differences: they say nothing.
  bool undefined = false;  ///< It bends at x itself: there is no derivative at all.
};

/// What a check found. Error of an entry = |a - c| / max(largest gradient of its tensor, 1e-6 x the largest over all).
struct GradientReport {
  std::vector<GradientEntry> entries;
  /// The largest gradient of each tensor, entries that were not drawn included.
  std::map<std::string, double> largest;
  double worst_complex_error = 0.0;
  double worst_difference_error = 0.0;
  /// The same relative to the entry itself, over entries above 1e-4 of their tensor's largest.
  double worst_relative_complex_error = 0.0;
  double worst_relative_difference_error = 0.0;
  /// One sentence for each rule of a backward pass that was broken: a gradient that is not added to the existing one,
  /// an operand that does not keep its bits. No error above shows these.
  std::vector<std::string> violations;

  /// Takes the largest gradients from a store.
  void measure(const ParameterStore<double>& store);
  /// Fills the errors from the values. A kink has no part in the worst difference error, and only where there is no
  /// derivative none in the complex one.
  void judge();
  /// True if every error is within its limit and no rule was broken.
  bool passed(double complex_limit = 1e-12, double difference_limit = 1e-7) const {
    return violations.empty() && worst_complex_error <= complex_limit && worst_difference_error <= difference_limit;
  }
  /// "operand 0[3]" for every entry at a kink.
  std::vector<std::string> kinks() const;
  /// The violations and the `count` worst entries, one a line.
  std::string worst(std::size_t count) const;
};

/// Raises `worst` to `error`, for errors of 0 and more; true if it did. A NaN is worse than any number, and stays.
inline bool raise_to(double& worst, double error) {
  if (worst != worst || error <= worst) return false;
  worst = error;
  return true;
}

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

/// The weights w of <f, w>: a function of the seed.
std::vector<double> random_weights(Index size, std::uint64_t seed);

/// All elements of f.
template <class S, class F>
std::vector<S> value_of(F& f, const ParameterStore<S>& store) {
  Tape<S> tape(false);
  tape.poison_memory();
  const Var<S> y = f(Inputs<S>(tape, store));
  return std::vector<S>(y.view().data, y.view().data + y.size());
}

/// Im <f(x + ih), w> / h.
template <class F>
double complex_step(F& f, ParameterStore<std::complex<double>>& store, Index at, double h, std::uint64_t seed) {
  const std::complex<double> x = store.values()[at];
  store.mutable_values()[at] = {x.real(), h};
  const auto y = value_of(f, store);
  store.mutable_values()[at] = x;
  const auto w = random_weights(static_cast<Index>(y.size()), seed);
  double sum = 0.0;
  for (std::size_t i = 0; i < y.size(); ++i) sum += y[i].imag() * w[i];
  return sum / h;
}

/// Central differences of fourth order. Elements are subtracted before they are summed: what x does not move cancels.
template <class F>
double central_difference(F& f, ParameterStore<double>& store, Index at, double h, std::uint64_t seed) {
  const double x = store.values()[at];
  const auto shifted = [&](double by) {
    store.mutable_values()[at] = x + by;
    return value_of(f, store);
  };
  const auto far_above = shifted(2 * h), above = shifted(h), below = shifted(-h), far_below = shifted(-2 * h);
  store.mutable_values()[at] = x;
  const auto w = random_weights(static_cast<Index>(above.size()), seed);
  double sum = 0.0;
  for (std::size_t i = 0; i < w.size(); ++i) {
    sum += w[i] * (8.0 * (above[i] - below[i]) - (far_above[i] - far_below[i]));
  }
  return sum / (12.0 * h);
}

/// True if <f, w> bends within 2h of the point: the slopes to the right and to the left differ by more than `least`,
/// and by more than curvature explains, which shrinks with the step. What swings faster than h looks like a kink, too.
template <class F>
bool has_kink(F& f, ParameterStore<double>& store, Index at, double h, double least, std::uint64_t seed) {
  const double x = store.values()[at];
  const auto value = [&](double by) {
    store.mutable_values()[at] = x + by;
    const auto y = value_of(f, store);
    const auto w = random_weights(static_cast<Index>(y.size()), seed);
    double sum = 0.0;
    for (std::size_t i = 0; i < y.size(); ++i) sum += w[i] * y[i];
    return sum;
  };
  const double here = value(0.0);
  const auto jump = [&](double step) { return std::abs(value(step) - 2.0 * here + value(-step)) / step; };
  const double wide = jump(2.0 * h), narrow = jump(0.25 * h);  // a smooth function's second is an eighth of the first
  store.mutable_values()[at] = x;
  return wide > least && (narrow > wide / 3.0 || narrow < wide / 30.0);
}

/// Throws Error if two evaluations differ: nothing can be said of the gradient of such a function.
void require_repeatable(const std::vector<double>& first, const std::vector<double>& second);

/// Throws ShapeError for an operand that holds nothing.
void require_values(std::span<const Tensor<double>> operands);

/// Throws RangeError if no entry would be looked at.
void require_entries(Index wanted);

/// Gradient of <f, w> by the backward pass, added to the store's.
template <class S, class F>
void add_gradient(F& f, const ParameterStore<S>& store, std::uint64_t seed) {
  Tape<S> tape;
  tape.poison_memory();
  const Var<S> y = f(Inputs<S>(tape, store));
  const auto w = random_weights(y.size(), seed);
  Tensor<S> weights(y.shape());
  for (Index i = 0; i < y.size(); ++i) weights[i] = static_cast<S>(w[static_cast<std::size_t>(i)]);
  tape.backward(y, weights);
}

/// add_gradient under watch, into gradients of 0. Names what the pass wrote to but must only read.
template <class F>
std::vector<std::string> watched_gradient(F& f, const ParameterStore<double>& store, std::uint64_t seed,
                                          OperandWatch<double>& watch) {
  Tape<double> tape;
  tape.poison_memory();
  tape.observe(watch);
  const Var<double> y = f(Inputs<double>(tape, store)).keep();
  const Tensor<double> weights(y.shape(), random_weights(y.size(), seed));
  tape.backward(y, weights);
  auto found = watch.violations();
  if (!std::equal(weights.span().begin(), weights.span().end(), y.gradient().data)) {
    found.push_back(tape.describe(y) + ", backward: it changed the gradient of its result");
  }
  return found;
}

/// Runs the backward pass again, into gradients of random numbers, and names the operands whose gradient is not added
/// to them; they must hold what the pass made of zeros.
template <class F>
std::vector<std::string> replaced_gradients(F& f, ParameterStore<double>& store, std::uint64_t seed) {
  const AddedGradient<double> proof(store, seed);
  add_gradient(f, store, seed);
  return proof.violations(1e-8);
}

/// Which entries of a tensor of that size are looked at: all, or `wanted` different ones.
std::vector<Index> entries_to_check(Index size, Index wanted, const Random& random);

}  // namespace detail

/// Checks the backward pass of f, a function of Inputs<S> for any scalar S that returns a dense Var<S>, at the given
/// operands: in double, against the complex step and against central differences of <f, w> with random w. It also
/// proves that gradients are added to the existing ones, by a second pass into random numbers, and that operands and
/// the values between them keep their bits; what breaks this is in the report's violations. Names kinks; throws Error
/// for a function that gives another value when it is asked again, RangeError for options that would check nothing.
template <class F>
GradientReport check_gradients(F f, std::span<const Tensor<double>> operands,
                               const GradientCheckOptions& options = {}) {
  detail::require_entries(options.entries);
  detail::require_values(operands);
  const ThreadScope one_thread(1);  // many evaluations of little things: a team would cost more than it brings
  auto real = detail::store_of<double>(operands);
  auto complex = detail::store_of<std::complex<double>>(operands);
  GradientReport report;
  OperandWatch<double> watch(real);
  const auto value = detail::value_of(f, real);
  report.violations = watch.violations();
  if (!report.violations.empty()) return report;  // of a function that changes its operands no slope can be taken
  detail::require_repeatable(value, detail::value_of(f, real));
  real.allocate_gradients();
  report.violations = detail::watched_gradient(f, real, options.seed, watch);
  report.measure(real);
  if (!report.violations.empty()) return report;
  for (const Parameter& p : real.parameters()) {
    const Random draw(options.seed, Stream::audit, static_cast<std::uint32_t>(p.offset) + 1);
    for (const Index i : detail::entries_to_check(p.shape.size(), options.entries, draw)) {
      const Index at = p.offset + i;
      GradientEntry entry{p.name, i, real.gradients()[at]};
      const double x = real.values()[at];
      entry.complex_step = detail::complex_step(f, complex, at, options.complex_step, options.seed);
      const double h = options.difference_step * std::max(1.0, std::abs(x));
      entry.difference = detail::central_difference(f, real, at, h, options.seed);
      if (std::abs(entry.difference - entry.complex_step) > 1e-8 * std::abs(entry.complex_step)) {
        entry.kink = detail::has_kink(f, real, at, h, 1e-9, options.seed);
        const double slope = std::max(std::abs(entry.complex_step), std::abs(entry.difference));
        entry.undefined =
            entry.kink && detail::has_kink(f, real, at, 1e-7 * std::max(1.0, std::abs(x)), 1e-3 * slope, options.seed);
      }
      report.entries.push_back(entry);
    }
  }
  report.judge();
  report.violations = detail::replaced_gradients(f, real, options.seed);  // last: it overwrites the gradients
  return report;
}

}  // namespace handgrad
