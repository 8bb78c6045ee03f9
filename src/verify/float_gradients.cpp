#include "handgrad/verify/float_gradients.h"

#include <algorithm>
#include <cmath>

#include "handgrad/core/errors.h"
#include "handgrad/verify/tolerances.h"

namespace handgrad::verify {

double largest_gradient(const ParameterStore<double>& store) {
  double largest = 0.0;
  for (Index i = 0; store.has_gradients() && i < store.flat_size(); ++i) {
    keep_worst(largest, std::abs(store.gradients()[i]));
  }
  return largest;
}

std::vector<TensorError> float_gradient_errors(const ParameterStore<float>& found,
                                               const ParameterStore<double>& exact) {
  if (!found.has_gradients() || !exact.has_gradients() || found.flat_size() != exact.flat_size()) {
    throw Error("float gradients: two stores of the same layout, with gradients, are needed");
  }
  const double largest = largest_gradient(exact);
  std::vector<TensorError> errors;
  for (const Parameter& p : exact.parameters()) {
    double error = 0.0, size = 0.0;
    for (Index i = p.offset; i < p.offset + p.shape.size(); ++i) {
      const double g = exact.gradients()[i], d = static_cast<double>(found.gradients()[i]) - g;
      error += d * d;
      size += g * g;
    }
    const double floor = small_share * largest * std::sqrt(static_cast<double>(p.shape.size()));
    errors.push_back({p.name, std::sqrt(error) / std::max({std::sqrt(size), floor, 1e-300})});
  }
  return errors;
}

}  // namespace handgrad::verify
