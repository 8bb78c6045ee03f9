#pragma once

#include <span>

namespace handgrad {

/// What a softmax over rows keeps: for each row x its largest element m, and log l with l = sum exp(x - m). Kept apart:
/// their sum would round log l away where m is large. S may be const.
template <class S>
struct SoftmaxStatistics {
  std::span<S> row_max, log_sum;

  operator SoftmaxStatistics<const S>() const { return {row_max, log_sum}; }
};

/// What layer normalisation keeps: for each row its mean, and 1 / sqrt(variance + eps). S may be const.
template <class S>
struct LayerNormStatistics {
  std::span<S> mean, inverse;

  operator LayerNormStatistics<const S>() const { return {mean, inverse}; }
};

}  // namespace handgrad
