#pragma once

#include <string>
#include <vector>

#include "handgrad/autograd/parameter_store.h"

namespace handgrad::verify {

/// The error of the gradient of one tensor in float.
struct TensorError {
  std::string tensor;
  double error = 0.0;
};

/// Relative L2 error of each tensor's gradient in float against the one in double:
/// ||a - c|| / max(||c||, small_share sqrt(n) x the largest gradient of all tensors). The stores have the same layout
/// and gradients; throws Error for others.
std::vector<TensorError> float_gradient_errors(const ParameterStore<float>& found, const ParameterStore<double>& exact);

/// The largest absolute value of the gradients of a store; NaN if one of them is.
double largest_gradient(const ParameterStore<double>& store);

/// Raises `worst` to `error`, for errors of 0 and more; true if it did. A NaN counts as larger than any number.
inline bool keep_worst(double& worst, double error) {
  if (worst != worst || error <= worst) return false;
  worst = error;
  return true;
}

}  // namespace handgrad::verify
