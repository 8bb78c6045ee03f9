#include "handgrad/ops/matmul.h"

#include <fmt/format.h>

#include "core/instantiate.h"
#include "core/math.h"
#include "handgrad/autograd/output.h"
#include "handgrad/core/errors.h"
#include "ops/broadcast.h"

namespace handgrad {
namespace {

// The matrices of a stack: which one belongs to index i of the leading axes, and how it lies.
template <class T>
struct Stack {
  View<T> matrices;  // leading axes as in y, stride 0 where broadcast
  Turn turn = Turn::no;
  Index rows = 0, cols = 0, stride = 0;  // as stored

  Stack(View<T> x, const Shape& y_shape, const char* name) {
    const Index r = x.shape[-2], c = x.shape[-1];
    const auto last = static_cast<std::size_t>(x.shape.rank() - 1);
    const Index row_step = x.strides[last - 1], col_step = x.strides[last];
    if (col_step == 1 || c == 1) {
      rows = r, cols = c, stride = r == 1 ? c : row_step;
    } else if (row_step == 1 || r == 1) {
      turn = Turn::yes;
      rows = c, cols = r, stride = col_step;
    } else {
      throw ShapeError(fmt::format("matmul: neither of the last two axes of {} {} is adjacent in memory", name,
                                   x.shape.to_string()));
    }
    matrices = broadcast_view(x, y_shape.with(-2, r).with(-1, c));
  }

  Rows<T> at(Index i) const { return {start(i), rows, cols, stride}; }
  T* start(Index i) const {
    T* p = matrices.data;
    for (int axis = matrices.shape.rank() - 3; axis >= 0; --axis) {
      p += i % matrices.shape[axis] * matrices.strides[static_cast<std::size_t>(axis)];
      i /= matrices.shape[axis];
    }
    return p;
  }
  Index count() const { return matrices.shape.size() / (matrices.shape[-1] * matrices.shape[-2]); }
};

template <class S>
Operand<S> operand(const Stack<const S>& stack, Index i, bool flip) {
  return {stack.at(i), (stack.turn == Turn::yes) != flip ? Turn::yes : Turn::no};
}

// into += factor left right for every index of the leading axes. Matrices of `into` that are the same memory (it was
// broadcast) are added by one thread, in order.
template <class S, class Left, class Right>
void add_products(const Stack<S>& into, double factor, Left left, Right right) {
  const auto add = [&](Index i) {
    const Rows<S> c = into.at(i);
    if (into.turn == Turn::no) {
      multiply<S>(left(i), right(i), constant<S>(factor), Store::add, c);
    } else {  // stored turned over: c^T += factor right^T left^T
      Operand<S> l = left(i), r = right(i);
      l.turn = l.turn == Turn::yes ? Turn::no : Turn::yes;
      r.turn = r.turn == Turn::yes ? Turn::no : Turn::yes;
      multiply<S>(r, l, constant<S>(factor), Store::add, c);
    }
  };
  if (distinct(into.matrices)) {
    parallel_tiles(into.count(), add);
  } else {
    parallel_tiles(1, [&](Index) {
      for (Index i = 0; i < into.count(); ++i) add(i);
    });
  }
}

Shape product_shape(const Shape& a, const Shape& b) {
  if (a.rank() < 2 || b.rank() < 2 || a[-1] != b[-2]) {
    throw ShapeError(
        fmt::format("matmul: (..., M, K) and (..., K, N) are needed, got {} and {}", a.to_string(), b.to_string()));
  }
  const int rank = std::max(a.rank(), b.rank());
  if (rank == 2) return {a[-2], b[-1]};
  const Shape leading = broadcast_shape(a.with(-2, 1).with(-1, 1), b.with(-2, 1).with(-1, 1), "matmul");
  return leading.with(-2, a[-2]).with(-1, b[-1]);
}

}  // namespace

template <class S>
void matmul_forward(View<const S> a, View<const S> b, double factor, View<S> y) {
  const Stack<const S> left(a, y.shape, "a"), right(b, y.shape, "b");
  const Stack<S> out(y, y.shape, "y");
  parallel_tiles(out.count(), [&](Index i) {
    multiply<S>(operand(left, i, false), operand(right, i, false), constant<S>(factor), Store::assign, out.at(i));
  });
}

// da += factor dy b^T, db += factor a^T dy
template <class S>
void matmul_backward(View<const S> a, View<const S> b, double factor, View<const S> dy, View<S> da, View<S> db) {
  const Stack<const S> left(a, dy.shape, "a"), right(b, dy.shape, "b"), upstream(dy, dy.shape, "dy");
  if (da) {
    add_products<S>(
        Stack<S>(da, dy.shape, "da"), factor, [&](Index i) { return operand(upstream, i, false); },
        [&](Index i) { return operand(right, i, true); });
  }
  if (db) {
    add_products<S>(
        Stack<S>(db, dy.shape, "db"), factor, [&](Index i) { return operand(left, i, true); },
        [&](Index i) { return operand(upstream, i, false); });
  }
}

template <class S>
Var<S> matmul(Var<S> a, Var<S> b, double factor) {
  auto y = output("matmul", product_shape(a.shape(), b.shape()), a, b);
  matmul_forward<S>(a.view(), b.view(), factor, y.view());
  return y.saves(a, b).on_backward([factor](const auto& saved, auto dy, auto da, auto db) {
    const auto& [a_saved, b_saved] = saved;
    matmul_backward<S>(a_saved, b_saved, factor, dy, da, db);
  });
}

#define HANDGRAD_INSTANTIATE(S)                                                   \
  template void matmul_forward<S>(View<const S>, View<const S>, double, View<S>); \
  template Var<S> matmul<S>(Var<S>, Var<S>, double);
HANDGRAD_FOR_ALL_SCALARS(HANDGRAD_INSTANTIATE)
#undef HANDGRAD_INSTANTIATE
#define HANDGRAD_INSTANTIATE(S) \
  template void matmul_backward<S>(View<const S>, View<const S>, double, View<const S>, View<S>, View<S>);
HANDGRAD_FOR_REAL_SCALARS(HANDGRAD_INSTANTIATE)
#undef HANDGRAD_INSTANTIATE

}  // namespace handgrad
