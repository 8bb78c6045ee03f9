#include "handgrad/ops/matmul.h"

#include "core/instantiate.h"
#include "core/math.h"
#include "handgrad/autograd/output.h"
#include "ops/check.h"
#include "ops/matrix_stack.h"

namespace handgrad {
namespace {

// into += factor left right, for every index of the leading axes
template <class S, class Left, class Right>
void add_products(const Stack<S>& into, double factor, Left left, Right right) {
  for_each_matrix(into, [&](Index i, Rows<S> c) {
    multiply_into<S>(left(i), right(i), constant<S>(factor), Store::add, c, into.transpose);
  });
}

template <class A, class B, class Y>
void check_product(const char* kernel, const View<A>& a, const View<B>& b, const View<Y>& y) {
  require_shape(kernel, a.shape, a);
  require_shape(kernel, b.shape, b);
  require_shape(kernel, product_shape(a.shape, b.shape), y);
}

}  // namespace

template <class S>
void matmul_forward(View<const S> a, View<const S> b, double factor, View<S> y) {
  check_product("matmul_forward", a, b, y);
  const Stack<const S> left(a, y.shape, "a"), right(b, y.shape, "b");
  const Stack<S> out(y, y.shape, "y");
  parallel_tiles(out.count(), [&](Index i) {
    multiply<S>(operand(left, i, false), operand(right, i, false), constant<S>(factor), Store::assign, out.at(i));
  });
}

// da += factor dy b^T, db += factor a^T dy
template <class S>
void matmul_backward(View<const S> a, View<const S> b, double factor, View<const S> dy, View<S> da, View<S> db) {
  check_product("matmul_backward", a, b, dy);
  if (da) require_shape("matmul_backward", a.shape, da);
  if (db) require_shape("matmul_backward", b.shape, db);
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
  require_operands("matmul", a, b);
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
