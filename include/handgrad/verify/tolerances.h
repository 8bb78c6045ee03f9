#pragma once

namespace handgrad {

/// The largest errors that pass, in the measures of verify/gradient_check.h.
struct GradientTolerances {
  double complex_step = 0.0;           ///< An entry against the complex step.
  double relative_complex_step = 0.0;  ///< The same, relative to the entry itself.
  double differences = 0.0;            ///< An entry against central differences.
  double relative_differences = 0.0;
  double in_float = 0.0;  ///< Relative L2 error of a tensor in float against double.
};

/// For one operation.
inline constexpr GradientTolerances operation_tolerances{1e-12, 1e-9, 1e-7, 1e-7, 5e-6};
/// For a whole model, where rounding errors accumulate over the layers.
inline constexpr GradientTolerances model_tolerances{1e-10, 1e-9, 1e-7, 1e-7, 2e-5};

/// Errors of a tensor are relative to its largest gradient, but at least to this share of the largest gradient of all
/// tensors. (Some gradients are 0 except for rounding, for example that of a key bias without RoPE.)
inline constexpr double small_share = 1e-6;

}  // namespace handgrad
