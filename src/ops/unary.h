#pragma once

#include <complex>
#include <utility>

#include "core/math.h"
#include "handgrad/autograd/output.h"
#include "ops/check.h"
#include "ops/elementwise.h"

// Defines an elementwise operation y = f(x). F has the function and its derivative:
//
//   struct Square {
//     template <class S> static S value(S x) { return x * x; }
//     template <class S> static S slope(S x) { return x + x; }
//   };
//   HANDGRAD_UNARY(square, Square)   // defines square, square_forward and square_backward of square.h

namespace handgrad {

struct UnaryNames {
  const char *operation, *forward, *backward;
};

template <class F, class S>
void unary_forward(const UnaryNames& names, Rows<const S> x, Rows<S> y) {
  require_rows(names.forward, x.rows, x.cols, x, y);
  map_forward<S>(x, y, [](S v) { return F::value(v); });
}

// dx += dy f'(x)
template <class F, class S>
void unary_backward(const UnaryNames& names, Rows<const S> x, Rows<const S> dy, Rows<S> dx) {
  require_rows(names.backward, x.rows, x.cols, x, dy, dx);
  map_backward<S>(x, dy, dx, [](S v) { return F::slope(v); });
}

template <class F, class S>
Var<S> unary(const UnaryNames& names, Var<S> x) {
  require_operands(names.operation, x);
  auto y = output(names.operation, x.shape(), x);
  unary_forward<F, S>(names, x.rows(names.operation), y.rows());
  return y.saves(x).on_backward([&names](const auto& saved, auto dy, auto dx) {
    const auto& [x_saved] = saved;
    unary_backward<F, S>(names, x_saved.rows(), dy.rows(), dx.rows());
  });
}

}  // namespace handgrad

#define HANDGRAD_UNARY(op, F)                                                            \
  namespace {                                                                            \
  constexpr UnaryNames names{#op, #op "_forward", #op "_backward"};                      \
  }                                                                                      \
  template <class S>                                                                     \
  void op##_forward(Rows<const S> x, Rows<S> y) {                                        \
    unary_forward<F, S>(names, x, y);                                                    \
  }                                                                                      \
  template <class S>                                                                     \
  void op##_backward(Rows<const S> x, Rows<const S> dy, Rows<S> dx) {                    \
    unary_backward<F, S>(names, x, dy, dx);                                              \
  }                                                                                      \
  template <class S>                                                                     \
  Var<S> op(Var<S> x) {                                                                  \
    return unary<F, S>(names, std::move(x));                                             \
  }                                                                                      \
  HANDGRAD_UNARY_FORWARD(op, float)                                                      \
  HANDGRAD_UNARY_FORWARD(op, double)                                                     \
  HANDGRAD_UNARY_FORWARD(op, std::complex<double>)                                       \
  template void op##_backward<float>(Rows<const float>, Rows<const float>, Rows<float>); \
  template void op##_backward<double>(Rows<const double>, Rows<const double>, Rows<double>);

#define HANDGRAD_UNARY_FORWARD(op, S)                    \
  template void op##_forward<S>(Rows<const S>, Rows<S>); \
  template Var<S> op<S>(Var<S>);
