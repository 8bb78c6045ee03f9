#include "handgrad/core/random.h"

#include <cmath>
#include <numbers>

#include "handgrad/core/errors.h"

namespace handgrad {

void detail::refuse_empty_range() { throw RangeError("random: the range must be 1 or more, got 0"); }

std::array<double, 2> Random::normals(std::uint64_t counter) const {
  const auto w = words(counter);
  const std::uint64_t a = (std::uint64_t{w[0]} << 32) | w[1];
  const std::uint64_t b = (std::uint64_t{w[2]} << 32) | w[3];
  const double u = (static_cast<double>(a >> 11) + 1.0) * 0x1p-53;  // in (0, 1]: its logarithm is finite
  const double angle = 2.0 * std::numbers::pi * (static_cast<double>(b >> 11) * 0x1p-53);
  const double radius = std::sqrt(-2.0 * std::log(u));
  return {radius * std::cos(angle), radius * std::sin(angle)};
}

}  // namespace handgrad
