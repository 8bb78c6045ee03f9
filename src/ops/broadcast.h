#pragma once

#include <span>

#include "ops/elementwise.h"

namespace handgrad {

/// `x` broadcast to a larger shape: axes that are missing, or that have extent 1, get stride 0.
template <class T>
View<T> broadcast_view(View<T> x, const Shape& shape) {
  View<T> wide{x.data, shape, {}};
  for (int i = 1; i <= x.shape.rank(); ++i) {
    const int from = x.shape.rank() - i, to = shape.rank() - i;
    wide.strides[to] = x.shape[-i] == 1 ? 0 : x.strides[from];
  }
  return wide;
}

/// The start of row `row` of a view. Rows are counted over all axes but the last, in row-major order.
template <class T>
T* row_start(const View<T>& x, Index row) {
  T* start = x.data;
  for (int i = x.shape.rank() - 2; i >= 0; --i) {
    start += row % x.shape[i] * x.strides[i];
    row /= x.shape[i];
  }
  return start;
}

template <class T>
Index last_stride(const View<T>& x) {
  return x.shape.rank() == 0 ? 0 : x.strides[x.shape.rank() - 1];
}

template <class T>
Index last_extent(const View<T>& x) {
  return x.shape.rank() == 0 ? 1 : x.shape[-1];
}

/// True if no two elements of the view share memory.
template <class T>
bool distinct(const View<T>& x) {
  for (int i = 0; i < x.shape.rank(); ++i) {
    if (x.shape[i] > 1 && x.strides[i] == 0) return false;
  }
  return true;
}

/// The memory from the first to the last element of a view.
template <class T>
std::span<T> memory_of(const View<T>& x) {
  Index extent = 1;
  for (int i = 0; i < x.shape.rank(); ++i) extent += (x.shape[i] - 1) * x.strides[i];
  return {x.data, static_cast<std::size_t>(extent)};
}

/// Calls f(element of y, element of a, element of b) for views of the same shape; rows in parallel. No elements of y
/// share memory.
template <class Y, class A, class B, class F>
void for_each_element(View<Y> y, View<A> a, View<B> b, F f) {
  const Index cols = last_extent(y);
  const Index sy = last_stride(y), sa = last_stride(a), sb = last_stride(b);
  for_each_row(y.shape.size() / cols, cols, [&](Index r) {
    Y* py = row_start(y, r);
    A* pa = row_start(a, r);
    B* pb = row_start(b, r);
    if (sy == 1 && sa == 1 && sb == 1) {
      for (Index c = 0; c < cols; ++c) f(py[c], pa[c], pb[c]);
    } else {
      for (Index c = 0; c < cols; ++c) f(py[c * sy], pa[c * sa], pb[c * sb]);
    }
  });
}

/// into += g(a, b), where `into` was broadcast. If elements share memory, one thread adds them in row-major order; else
/// rows run in parallel.
template <class S, class A, class B, class G>
void add_reduced(View<S> into, View<A> a, View<B> b, G g) {
  const auto add = [&](S& to, A& x, B& y) { to += g(x, y); };
  if (distinct(into)) {
    for_each_element(into, a, b, add);
    return;
  }
  const Index cols = last_extent(into);
  const Index st = last_stride(into), sa = last_stride(a), sb = last_stride(b);
  parallel_tiles(1, [&](Index) {
    for (Index r = 0; r < into.shape.size() / cols; ++r) {
      S* to = row_start(into, r);
      A* pa = row_start(a, r);
      B* pb = row_start(b, r);
      for (Index c = 0; c < cols; ++c) add(to[c * st], pa[c * sa], pb[c * sb]);
    }
  });
}

}  // namespace handgrad
