#pragma once

#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "handgrad/core/random.h"
#include "handgrad/core/tensor.h"

// Errors of the float and the double code against long double (64-bit mantissa), for inputs of extreme scale.

namespace handgrad::test {

using Wide = long double;

/// The largest and the mean error of many results. Each error has its own unit.
template <class S>
class ErrorMeter {
 public:
  /// In units in the last place of the exact result. `flush`: what a factor that fell below FLT_MIN, and may be 0, was
  /// multiplied by afterwards; an error that this explains is not counted.
  void in_ulps(S found, Wide exact, Wide flush = 1) {
    const int exponent = exact == 0             ? std::numeric_limits<S>::min_exponent
                         : std::isfinite(exact) ? std::ilogb(exact) + 1
                                                : std::numeric_limits<S>::max_exponent;  // nothing is claimed there
    add(found, exact, std::abs(exact), std::ldexp(1.0L, exponent - std::numeric_limits<S>::digits), flush);
  }
  /// In eps times `terms`, the size of what was added or passed on: the sum of absolute terms.
  void in_terms(S found, Wide exact, Wide terms, Wide flush = 1) {
    add(found, exact, terms, terms * static_cast<Wide>(std::numeric_limits<S>::epsilon()), flush);
  }
  double worst() const { return worst_; }
  double mean() const { return count_ > 0 ? sum_ / static_cast<double>(count_) : 0.0; }
  Index count() const { return count_; }

 private:
  void add(S found, Wide exact, Wide size, Wide unit, Wide flush) {
    constexpr Wide largest = std::numeric_limits<S>::max(), smallest = std::numeric_limits<S>::min();
    if (size > largest * 0.999L) return;  // a term overflows: nothing is claimed
    ++count_;
    if (!std::isfinite(found)) {
      worst_ = sum_ = std::numeric_limits<double>::infinity();
      return;
    }
    const Wide error = std::abs(static_cast<Wide>(found) - exact) - 4 * smallest * std::max(1.0L, flush);
    const double units = error > 0 ? static_cast<double>(error / unit) : 0.0;
    worst_ = std::max(worst_, units);
    sum_ += units;
  }

  double worst_ = 0.0, sum_ = 0.0;
  Index count_ = 0;
};

/// Numbers for which sums and functions are inaccurate: every scale, both signs, a few far larger than their row.
class HardInputs {
 public:
  explicit HardInputs(std::uint32_t substream) : random_(20, Stream::audit, substream) {}

  /// In [low, high).
  double uniform(double low, double high) { return low + (high - low) * random_.uniform(next_++); }
  double normal() { return random_.normal(next_++); }
  /// Either sign, its logarithm uniform between powers of 2.
  double of_any_scale(double low_exponent, double high_exponent) {
    const double size = std::exp2(uniform(low_exponent, high_exponent));
    return uniform(0, 1) < 0.5 ? -size : size;
  }
  /// Rows of `cols` numbers: each row has its own scale, 2^low to 2^high, and one number in 16 is up to 2^outlier
  /// larger.
  template <class S>
  Tensor<S> rows(Index count, Index cols, double low, double high, double outlier) {
    Tensor<S> x({count, cols});
    for (Index r = 0; r < count; ++r) {
      const double scale = std::exp2(uniform(low, high));
      for (Index c = 0; c < cols; ++c) {
        const double factor = uniform(0, 1) < 1.0 / 16 ? std::exp2(uniform(0, outlier)) : 1.0;
        x[r * cols + c] = static_cast<S>(scale * factor * normal());
      }
    }
    return x;
  }
  template <class S>
  Tensor<S> elements(Index count, const std::function<double(HardInputs&)>& draw) {
    Tensor<S> x({1, count});
    for (Index i = 0; i < count; ++i) x[i] = static_cast<S>(draw(*this));
    return x;
  }

 private:
  Random random_;
  std::uint64_t next_ = 0;
};

/// One line of the accuracy table.
struct Accuracy {
  std::string name, unit;
  double float_worst = 0, float_mean = 0, double_worst = 0, double_mean = 0;
  Index count = 0;
};

/// Elementwise functions and their slopes.
std::vector<Accuracy> accuracy_of_functions(Index inputs);
/// Operations that sum along rows, and the update of the optimiser.
std::vector<Accuracy> accuracy_of_sums(Index inputs);

}  // namespace handgrad::test
