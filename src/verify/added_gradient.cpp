#include "handgrad/verify/added_gradient.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "handgrad/core/errors.h"
#include "handgrad/core/random.h"
#include "handgrad/verify/float_gradients.h"
#include "handgrad/verify/tolerances.h"
#include "verify/draws.h"

namespace handgrad::verify {

template <class S>
AddedGradient<S>::AddedGradient(ParameterStore<S>& store, std::uint64_t seed) : store_(store) {
  if (!store.has_gradients()) throw Error("added gradient: the store has no gradients; call allocate_gradients()");
  S* gradients = store.gradients();
  found_.assign(gradients, gradients + store.flat_size());
  double overall = 0.0;
  for (const Parameter& p : store.parameters()) {
    double largest = 0.0;
    for (Index i = p.offset; i < p.offset + p.shape.size(); ++i) {
      const double size = std::abs(static_cast<double>(gradients[i]));
      if (std::isfinite(size)) largest = std::max(largest, size);
    }
    scales_.push_back(largest);
    overall = std::max(overall, largest);
  }
  filled_ = found_;
  for (std::size_t n = 0; n < scales_.size(); ++n) {
    scales_[n] = overall > 0.0 ? std::max(scales_[n], small_share * overall) : 1.0;
    const ParameterId id = static_cast<ParameterId>(n);
    const Parameter& p = store.parameter(id);
    const Random random(seed, Stream::audit, draw_number(Draw::added_gradient, n));
    for (Index i = 0; i < p.shape.size(); ++i) {
      const auto [one, other] = random.normals(i);
      S& to = gradients[p.offset + i];
      to = static_cast<S>(scales_[n] * one);
      filled_[p.offset + i] = to;
      if (S* second = store.second_gradient(id)) {  // finish_gradients() adds it to the first
        second[i] = static_cast<S>(scales_[n] * other);
        filled_[p.offset + i] += second[i];
      }
    }
  }
}

template <class S>
std::vector<typename AddedGradient<S>::Row> AddedGradient<S>::compare() const {
  std::vector<Row> rows;
  for (std::size_t n = 0; n < scales_.size(); ++n) {
    const Parameter& p = store_.parameter(static_cast<ParameterId>(n));
    Row row{p.name};
    for (Index i = 0; i < p.shape.size(); ++i) {
      const auto at = (p.offset + i);
      const double gained = static_cast<double>(store_.gradients()[p.offset + i]) - static_cast<double>(filled_[at]);
      if (keep_worst(row.error, std::abs(gained - static_cast<double>(found_[at])) / scales_[n])) row.index = i;
    }
    rows.push_back(row);
  }
  return rows;
}

template <class S>
std::vector<std::string> AddedGradient<S>::violations(double limit) const {
  std::vector<std::string> all;
  for (const Row& row : compare()) {
    if (row.error <= limit) continue;
    all.push_back(
        fmt::format("{}: the gradient must be added to the existing one, but entry {} is off by {:.2e} of the largest "
                    "gradient in a "
                    "second pass",
                    row.tensor, row.index, row.error));
  }
  return all;
}

template class AddedGradient<float>;
template class AddedGradient<double>;

}  // namespace handgrad::verify
