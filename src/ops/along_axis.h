#pragma once

#include <utility>

#include "ops/broadcast.h"

namespace handgrad {

/// The view with `axis` and the last axis exchanged.
template <class T>
View<T> along_last(View<T> x, int axis) {
  const int last = x.shape.rank() - 1;
  std::swap(x.strides[axis], x.strides[last]);
  const Index n = x.shape[axis], m = x.shape[last];
  x.shape = x.shape.with(axis, m).with(last, n);
  return x;
}

/// Calls line(r, step) for every row of y, in parallel. step(s) is s, or the constant 1 if the elements of every row of
/// all views are adjacent, so that the compiler can vectorise the loops.
template <class T, class Line, class... Others>
void for_each_line(const View<T>& y, Line&& line, const Others&... others) {
  const Index cols = last_extent(y);
  const bool adjacent = last_stride(y) == 1 && ((last_stride(others) == 1) && ...);
  for_each_row(y.shape.size() / cols, cols, [&](Index r) {
    if (adjacent) {
      line(r, [](Index) { return std::integral_constant<Index, 1>{}; });
    } else {
      line(r, [](Index stride) { return stride; });
    }
  });
}

}  // namespace handgrad
