#pragma once

namespace handgrad {

/// The largest errors that pass, in the measures of verify/gradient_check.h.
struct GradientTolerances {
  double complex_step = 0.0;           ///< An entry against the complex step.
  double relative_complex_step = 0.0;  ///< The same relative to the entry, for entries that are not small.
  double differences = 0.0;            ///< An entry against central differences.
  double relative_differences = 0.0;
  double in_float = 0.0;  ///< Relative L2 error of a tensor in float against double.
};

/// For one operation.
inline constexpr GradientTolerances operation_tolerances{1e-12, 1e-9, 1e-7, 1e-7, 5e-6};
/// For a whole model, whose rounding errors add up over its layers.
inline constexpr GradientTolerances model_tolerances{1e-10, 1e-9, 1e-7, 1e-7, 2e-5};

/// A gradient is small below this share of the largest gradient of all tensors: errors are measured against that share
/// at least. (Some gradients are exactly 0 but for rounding, that of a key bias without RoPE for example.)
inline constexpr double small_share = 1e-6;

}  // namespace handgrad
