#pragma once

#include "core/math.h"
#include "handgrad/autograd/output.h"
#include "ops/broadcast.h"
#include "ops/check.h"

// The sum of all elements, for sum and mean.

namespace handgrad {

/// The sum of all elements, in row-major order.
template <class S>
Accumulator<S> total_of(const char* kernel, View<const S> x) {
  require_shape(kernel, x.shape, x);
  const Index cols = last_extent(x), stride = last_stride(x);
  Accumulator<S> total{};
  for (Index r = 0; r < x.shape.size() / cols; ++r) {
    const S* row = row_start(x, r);
    for (Index c = 0; c < cols; ++c) total += row[c * stride];
  }
  return total;
}

/// dx += share
template <class S>
void add_to_all(const char* kernel, S share, View<S> dx) {
  require_shape(kernel, dx.shape, dx);
  const View<const S> any = dx;
  for_each_element(dx, any, any, [share](S& to, const S&, const S&) { to += share; });
}

}  // namespace handgrad
