#pragma once

#include <fmt/format.h>

#include "core/math.h"
#include "handgrad/core/errors.h"
#include "ops/broadcast.h"
#include "ops/seen_product.h"

namespace handgrad {

/// Throws ShapeError, which names `operation`, unless one of the last two axes has adjacent elements.
template <class T>
void require_matrices(const char* operation, const char* name, const View<T>& x) {
  const int last = x.shape.rank() - 1;
  const auto adjacent = [&](int axis) { return x.shape[axis] == 1 || x.strides[axis] == 1; };
  if (adjacent(last) || adjacent(last - 1)) return;
  throw ShapeError(
      fmt::format("{}: one of the last two axes of {} must have adjacent elements, got a view {}; make a "
                  "copy with contiguous()",
                  operation, name, x.shape.to_string()));
}

/// The matrices in the last two axes of a view, one for each index of the leading axes of y.
template <class T>
struct Stack {
  View<T> matrices;  // leading axes as in y, stride 0 where broadcast
  Transpose transpose = Transpose::no;
  Index rows = 0, cols = 0, stride = 0;  // as stored

  Stack(View<T> x, const Shape& y_shape, const char* name) {
    require_matrices("matmul", name, x);
    const Index r = x.shape[-2], c = x.shape[-1];
    const int last = x.shape.rank() - 1;
    const Index row_step = x.strides[last - 1], col_step = x.strides[last];
    if (col_step == 1 || c == 1) {
      rows = r, cols = c, stride = r == 1 ? c : row_step;
    } else {
      transpose = Transpose::yes;
      rows = c, cols = r, stride = col_step;
    }
    matrices = broadcast_view(x, y_shape.with(-2, r).with(-1, c));
  }

  Rows<T> at(Index i) const { return {start(i), rows, cols, stride}; }
  T* start(Index i) const {
    T* p = matrices.data;
    for (int axis = matrices.shape.rank() - 3; axis >= 0; --axis) {
      p += i % matrices.shape[axis] * matrices.strides[axis];
      i /= matrices.shape[axis];
    }
    return p;
  }
  Index count() const { return matrices.shape.size() / (matrices.shape[-1] * matrices.shape[-2]); }
};

template <class S>
Operand<S> operand(const Stack<const S>& stack, Index i, bool flip) {
  return {stack.at(i), (stack.transpose == Transpose::yes) != flip ? Transpose::yes : Transpose::no};
}

/// Calls add(i, c) for every index i of the leading axes, where c is the matrix of `into` as stored. If matrices share
/// memory (`into` was broadcast), one thread calls them in order.
template <class S, class Add>
void for_each_matrix(const Stack<S>& into, Add add) {
  if (distinct(into.matrices)) {
    parallel_tiles(into.count(), [&](Index i) { add(i, into.at(i)); });
  } else {
    parallel_tiles(1, [&](Index) {
      for (Index i = 0; i < into.count(); ++i) add(i, into.at(i));
    });
  }
}

/// The shape of a b for a (..., M, K) and b (..., K, N). Throws ShapeError.
inline Shape product_shape(const Shape& a, const Shape& b) {
  if (a.rank() < 2 || b.rank() < 2 || a[-1] != b[-2]) {
    throw ShapeError(
        fmt::format("matmul: (..., M, K) and (..., K, N) are needed, got {} and {}", a.to_string(), b.to_string()));
  }
  const int rank = std::max(a.rank(), b.rank());
  if (rank == 2) return {a[-2], b[-1]};
  const Shape leading = broadcast_shape(a.with(-2, 1).with(-1, 1), b.with(-2, 1).with(-1, 1), "matmul");
  return leading.with(-2, a[-2]).with(-1, b[-1]);
}

}  // namespace handgrad
