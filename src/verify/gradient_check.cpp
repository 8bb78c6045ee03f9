#include "handgrad/verify/gradient_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "core/instantiate.h"
#include "handgrad/core/errors.h"
#include "handgrad/core/random.h"
#include "handgrad/verify/added_gradient.h"
#include "handgrad/verify/operand_watch.h"

namespace handgrad {

namespace detail {

double random_weight(std::uint64_t seed, Index i) { return Random(seed, Stream::audit).normal(i); }

void require_operand(int i, int count) {
  if (i < 0 || i >= count)
    throw RangeError(fmt::format("gradient check: there are {} operands, got operand {}", count, i));
}

template <class S>
ParameterStore<S> store_of(std::span<const Tensor<double>> operands) {
  ParameterStore<S> store;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    if (operands[i].empty()) throw ShapeError(fmt::format("gradient check: operand {} is empty", i));
    store.add(fmt::format("operand {}", i), operands[i].shape());
  }
  store.allocate();
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const auto values = operands[i].span();
    std::transform(values.begin(), values.end(),
                   store.mutable_values() + store.parameter(static_cast<ParameterId>(i)).offset,
                   [](double x) { return static_cast<S>(x); });
  }
  return store;
}
template ParameterStore<float> store_of(std::span<const Tensor<double>>);
template ParameterStore<double> store_of(std::span<const Tensor<double>>);
template ParameterStore<std::complex<double>> store_of(std::span<const Tensor<double>>);

}  // namespace detail

namespace {

using Complex = std::complex<double>;

// If gradients are added, the second pass differs from the first by rounding only; if they are assigned, by about 1.
constexpr double added_limit = 1e-8;

// The entries to check of a tensor with `size` entries: all, or `wanted` different ones.
std::vector<Index> entries_to_check(Index size, Index wanted, const Random& random) {
  std::set<Index> chosen;
  if (size <= wanted) {
    for (Index i = 0; i < size; ++i) chosen.insert(i);
  } else {
    for (std::uint64_t n = 0; std::ssize(chosen) < wanted; ++n) {
      chosen.insert(static_cast<Index>(random.below(n, size)));
    }
  }
  return {chosen.begin(), chosen.end()};
}

// sum_i weight(i) values[i]
double weighted_sum(const verify::Subject<double>& subject, const std::vector<double>& values) {
  double sum = 0.0;
  for (std::size_t i = 0; i < values.size(); ++i) sum += subject.weight(static_cast<Index>(i)) * values[i];
  return sum;
}

// Im f(x + ih) / h for element `at` of the store.
double complex_step(verify::Subject<Complex>& subject, Index at, double h) {
  Complex& x = subject.store().mutable_values()[at];
  const Complex before = x;
  x = {before.real(), h};
  const std::vector<Complex> y = evaluate(subject);
  x = before;
  double sum = 0.0;
  for (std::size_t i = 0; i < y.size(); ++i) sum += subject.weight(static_cast<Index>(i)) * y[i].imag();
  return sum / h;
}

// The value at x + by for element `at` of the store.
std::vector<double> shifted(verify::Subject<double>& subject, Index at, double by) {
  double& x = subject.store().mutable_values()[at];
  const double before = x;
  x = before + by;
  std::vector<double> y = evaluate(subject);
  x = before;
  return y;
}

// Central differences of fourth order. Elements are subtracted before they are summed, so that elements that do not
// depend on x cancel exactly.
double central_difference(verify::Subject<double>& subject, Index at, double h) {
  const auto far_above = shifted(subject, at, 2 * h), above = shifted(subject, at, h);
  const auto below = shifted(subject, at, -h), far_below = shifted(subject, at, -2 * h);
  std::vector<double> y(above.size());
  for (std::size_t i = 0; i < y.size(); ++i) y[i] = 8.0 * (above[i] - below[i]) - (far_above[i] - far_below[i]);
  return weighted_sum(subject, y) / (12.0 * h);
}

// True if <f, w> has a kink within 2h of the point: the slopes to the right and to the left differ by more than
// `least`, and the difference does not decrease with the step as it does for a smooth function. Also true for a
// function that oscillates within h.
bool has_kink(verify::Subject<double>& subject, Index at, double h, double least) {
  const auto value = [&](double by) { return weighted_sum(subject, shifted(subject, at, by)); };
  const double here = value(0.0);
  const auto jump = [&](double step) { return std::abs(value(step) - 2.0 * here + value(-step)) / step; };
  const double wide = jump(2.0 * h), narrow = jump(0.25 * h);  // for a smooth function, narrow = wide / 8
  return wide > least && (narrow > wide / 3.0 || narrow < wide / 30.0);
}

void add_difference(verify::Subject<double>& subject, Index at, double step, GradientEntry& entry) {
  const double unit = std::max(1.0, std::abs(subject.store().values()[at])), h = step * unit;
  const double difference = central_difference(subject, at, h);
  entry.difference = difference;
  if (std::abs(difference - entry.complex_step) <= 1e-8 * std::abs(entry.complex_step)) return;
  entry.kink = has_kink(subject, at, h, 1e-9);
  const double slope = std::max(std::abs(entry.complex_step), std::abs(difference));
  entry.undefined = entry.kink && has_kink(subject, at, 1e-7 * unit, 1e-3 * slope);
}

void require_repeatable(verify::Subject<double>& subject, const std::vector<double>& first) {
  const std::vector<double> second = evaluate(subject);
  if (!std::equal(first.begin(), first.end(), second.begin(), second.end(),
                  [](double a, double b) { return a == b || (a != a && b != b); })) {
    throw Error("gradient check: two evaluations of the function differ; it must be deterministic");
  }
}

// Draws the entries and takes their values and the largest gradients from the store.
void draw_entries(const ParameterStore<double>& store, const GradientCheckOptions& options, GradientReport& report) {
  for (const Parameter& p : store.parameters()) {
    double& largest = report.largest[p.name];
    for (Index i = p.offset; i < p.offset + p.shape.size(); ++i) {
      largest = std::max(largest, std::abs(store.gradients()[i]));
    }
    const Random random(options.seed, Stream::audit, static_cast<std::uint32_t>(p.offset) + 1);
    for (const Index i : entries_to_check(p.shape.size(), options.entries, random)) {
      report.entries.push_back({.tensor = p.name, .index = i, .value = store.gradients()[p.offset + i]});
    }
  }
}

void compare_entries(const verify::Subjects& subjects, const GradientCheckOptions& options, GradientReport& report) {
  const auto count = std::ssize(report.entries);
  const auto place = [&](const auto& store, const GradientEntry& entry) {
    return store.find(entry.tensor)->offset + entry.index;
  };
  const auto progress = [&](double from, double to) -> std::function<void(double)> {
    if (!options.progress) return {};
    return [=, &options](double share) { options.progress(from + (to - from) * share); };
  };
  const double middle = options.differences ? 0.3 : 1.0;
  verify::for_each_evaluation<Complex>(
      subjects.in_complex, options.workers, count,
      [&](Index i, verify::Subject<Complex>& subject) {
        GradientEntry& entry = report.entries[i];
        entry.complex_step = complex_step(subject, place(subject.store(), entry), options.complex_step);
      },
      progress(0.0, middle));
  if (!options.differences) return;
  verify::for_each_evaluation<double>(
      subjects.in_double, options.workers, count,
      [&](Index i, verify::Subject<double>& subject) {
        GradientEntry& entry = report.entries[i];
        add_difference(subject, place(subject.store(), entry), options.difference_step, entry);
      },
      progress(middle, 1.0));
}

}  // namespace

GradientReport check_gradients(const verify::Subjects& subjects, const GradientCheckOptions& options) {
  if (options.entries < 1) {
    throw RangeError(fmt::format("gradient check: the number of entries must be 1 or more, got {}", options.entries));
  }
  const ThreadScope threads(options.workers);
  const std::unique_ptr<verify::Subject<double>> subject = subjects.in_double();
  GradientReport report;
  const verify::OperandWatch<double> watch(subject->store());
  const std::vector<double> value = evaluate(*subject);
  report.violations = watch.violations();
  if (!report.violations.empty()) return report;  // a function that changes its operands has no derivative
  require_repeatable(*subject, value);
  report.violations = verify::watched_gradient(*subject);
  draw_entries(subject->store(), options, report);
  if (!report.violations.empty()) return report;
  compare_entries(subjects, options, report);
  report.compute_errors();
  const verify::AddedGradient<double> second(subject->store(), options.seed);
  verify::add_gradient(*subject);
  report.violations = second.violations(added_limit);
  return report;
}

bool GradientReport::passed(const GradientTolerances& limits) const {
  return violations.empty() && worst_complex_error <= limits.complex_step &&
         worst_difference_error <= limits.differences && worst_relative_complex_error <= limits.relative_complex_step &&
         worst_relative_difference_error <= limits.relative_differences;
}

std::vector<std::string> GradientReport::kinks() const {
  std::vector<std::string> names;
  for (const GradientEntry& e : entries) {
    if (e.kink) names.push_back(fmt::format("{}[{}]", e.tensor, e.index));
  }
  return names;
}

void GradientReport::compute_errors() {
  double overall = 0.0;
  for (const GradientEntry& e : entries) {
    double& of_tensor = largest[e.tensor];
    of_tensor = std::max({of_tensor, std::abs(e.value), std::abs(e.complex_step)});
  }
  for (const auto& [tensor, most] : largest) overall = std::max(overall, most);
  worst_complex_error = worst_difference_error = 0.0;
  worst_relative_complex_error = worst_relative_difference_error = 0.0;
  for (GradientEntry& e : entries) {
    const double scale = std::max({largest[e.tensor], small_share * overall, 1e-300});
    const double complex_distance = std::abs(e.value - e.complex_step);
    const double difference_distance = e.difference ? std::abs(e.value - *e.difference) : 0.0;
    e.complex_error = complex_distance / scale;
    e.difference_error = difference_distance / scale;
    if (e.undefined) continue;
    const double size = std::abs(e.complex_step);
    const bool large = size > 1e-4 * largest[e.tensor];
    verify::keep_worst(worst_complex_error, e.complex_error);
    if (large) verify::keep_worst(worst_relative_complex_error, complex_distance / size);
    if (e.kink) continue;
    verify::keep_worst(worst_difference_error, e.difference_error);
    if (large) verify::keep_worst(worst_relative_difference_error, difference_distance / size);
  }
}

std::string GradientReport::worst(std::size_t count) const {
  std::vector<const GradientEntry*> order;
  for (const GradientEntry& e : entries) order.push_back(&e);
  const auto badness = [](const GradientEntry& e) {
    const double error = e.complex_error + 1e-5 * e.difference_error;
    return error == error ? error : 1e300;
  };
  std::sort(order.begin(), order.end(), [&](auto* a, auto* b) { return badness(*a) > badness(*b); });
  std::string text;
  for (const std::string& violation : violations) text += violation + "\n";
  for (std::size_t i = 0; i < std::min(count, order.size()); ++i) {
    const GradientEntry& e = *order[i];
    text += fmt::format("{}[{}]: backward {:.17g}, complex step {:.17g} (error {:.2e})", e.tensor, e.index, e.value,
                        e.complex_step, e.complex_error);
    if (e.difference) text += fmt::format(", differences {:.17g} ({:.2e})", *e.difference, e.difference_error);
    text += "\n";
  }
  return text;
}

}  // namespace handgrad
