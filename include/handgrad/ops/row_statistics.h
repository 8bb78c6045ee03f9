#pragma once

#include <span>

namespace handgrad {

/// Statistics of a softmax over rows x: the largest element m, and log l with l = sum exp(x - m), one of each per row.
/// They are stored separately, since m + log l would lose log l to rounding where m is large. S may be const.
template <class S>
struct SoftmaxStatistics {
  std::span<S> row_max, log_sum;

  operator SoftmaxStatistics<const S>() const { return {row_max, log_sum}; }
};

/// Statistics of layer normalisation: the mean and 1 / sqrt(variance + eps), one of each per row. S may be const.
template <class S>
struct LayerNormStatistics {
  std::span<S> mean, inverse;

  operator LayerNormStatistics<const S>() const { return {mean, inverse}; }
};

}  // namespace handgrad
