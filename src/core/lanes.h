#pragma once

#include "core/math.h"

namespace handgrad {

/// f(0) + ... + f(n - 1) in a fixed order: element i is added to lane i mod 16, and the lanes are added pairwise at the
/// end. A compiler may not vectorise a plain sum, because that changes the order; this order is vector code already.
template <class A, class F>
A lane_sum(Index n, F&& f) {
  constexpr Index lanes = 16;
  A sums[lanes] = {};
  Index i = 0;
  for (; i + lanes <= n; i += lanes) {
    for (Index l = 0; l < lanes; ++l) sums[l] += f(i + l);
  }
  for (Index l = 0; i + l < n; ++l) sums[l] += f(i + l);
  for (Index width = lanes / 2; width > 0; width /= 2) {
    for (Index l = 0; l < width; ++l) sums[l] += sums[l + width];
  }
  return sums[0];
}

/// The largest real part of f(0) .. f(n - 1), n >= 1; NaN if one of them is NaN.
template <class S, class F>
auto lane_max(Index n, F&& f) {
  using R = decltype(real_part(S{}));
  constexpr Index lanes = 16;
  R best[lanes];
  for (Index l = 0; l < lanes; ++l) best[l] = real_part(f(l < n ? l : 0));
  const auto take = [](R& a, R b) { a = a < b || b != b ? b : a; };  // NaN propagates, since NaN < b is false
  Index i = 0;
  for (; i + lanes <= n; i += lanes) {
    for (Index l = 0; l < lanes; ++l) take(best[l], real_part(f(i + l)));
  }
  for (Index l = 0; i + l < n; ++l) take(best[l], real_part(f(i + l)));
  for (Index width = lanes / 2; width > 0; width /= 2) {
    for (Index l = 0; l < width; ++l) take(best[l], best[l + width]);
  }
  return best[0];
}

}  // namespace handgrad
