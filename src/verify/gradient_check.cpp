#include "handgrad/verify/gradient_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "handgrad/core/errors.h"

namespace handgrad {

namespace detail {

std::vector<double> random_weights(Index size, std::uint64_t seed) {
  const Random random(seed, Stream::audit);
  std::vector<double> weights;
  for (Index i = 0; i < size; ++i) weights.push_back(random.normal(static_cast<std::uint64_t>(i)));
  return weights;
}

std::vector<Index> entries_to_check(Index size, Index wanted, const Random& random) {
  std::set<Index> chosen;
  if (size <= wanted) {
    for (Index i = 0; i < size; ++i) chosen.insert(i);
  } else {
    for (std::uint64_t n = 0; static_cast<Index>(chosen.size()) < wanted; ++n) {
      chosen.insert(static_cast<Index>(random.below(n, static_cast<std::uint64_t>(size))));
    }
  }
  return {chosen.begin(), chosen.end()};
}

void require_repeatable(const std::vector<double>& first, const std::vector<double>& second) {
  if (first.size() != second.size() || !std::equal(first.begin(), first.end(), second.begin(),
                                                   [](double a, double b) { return a == b || (a != a && b != b); })) {
    throw Error(
        "gradient check: the function gives another value when it is asked again, so it has no gradient to check");
  }
}

void require_operand(int i, int count) {
  if (i < 0 || i >= count)
    throw RangeError(fmt::format("gradient check: there are {} operands, got operand {}", count, i));
}

void require_values(std::span<const Tensor<double>> operands) {
  for (std::size_t i = 0; i < operands.size(); ++i) {
    if (operands[i].empty()) throw ShapeError(fmt::format("gradient check: operand {} holds no values", i));
  }
}

void require_entries(Index wanted) {
  if (wanted < 1)
    throw RangeError(fmt::format("gradient check: entries of an operand: expected 1 or more, got {}", wanted));
}

}  // namespace detail

std::vector<std::string> GradientReport::kinks() const {
  std::vector<std::string> names;
  for (const GradientEntry& e : entries) {
    if (e.kink) names.push_back(fmt::format("{}[{}]", e.tensor, e.index));
  }
  return names;
}

void GradientReport::measure(const ParameterStore<double>& store) {
  for (const Parameter& p : store.parameters()) {
    double& most = largest[p.name];
    for (Index i = p.offset; i < p.offset + p.shape.size(); ++i) most = std::max(most, std::abs(store.gradients()[i]));
  }
}

void GradientReport::judge() {
  double overall = 0.0;
  for (const GradientEntry& e : entries) {
    double& of_tensor = largest[e.tensor];
    of_tensor = std::max({of_tensor, std::abs(e.value), std::abs(e.complex_step)});
  }
  for (const auto& [tensor, most] : largest) overall = std::max(overall, most);
  worst_complex_error = worst_difference_error = 0.0;
  worst_relative_complex_error = worst_relative_difference_error = 0.0;
  for (GradientEntry& e : entries) {
    const double scale = std::max({largest[e.tensor], 1e-6 * overall, 1e-300});
    e.complex_error = std::abs(e.value - e.complex_step) / scale;
    e.difference_error = std::abs(e.value - e.difference) / scale;
    if (e.undefined) continue;
    const double size = std::abs(e.complex_step);
    const bool large = size > 1e-4 * largest[e.tensor];
    raise_to(worst_complex_error, e.complex_error);
    if (large) raise_to(worst_relative_complex_error, std::abs(e.value - e.complex_step) / size);
    if (e.kink) continue;
    raise_to(worst_difference_error, e.difference_error);
    if (large) raise_to(worst_relative_difference_error, std::abs(e.value - e.difference) / size);
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
    text += fmt::format("{}[{}]: backward {:.17g}, complex step {:.17g} (error {:.2e}), differences {:.17g} ({:.2e})\n",
                        e.tensor, e.index, e.value, e.complex_step, e.complex_error, e.difference, e.difference_error);
  }
  return text;
}

}  // namespace handgrad
