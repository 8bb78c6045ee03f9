#pragma once

#include "handgrad/autograd/var.h"

namespace handgrad {

/// Logarithm of the softmax along an axis.
///
///   forward    y_i = (x_i - m) - log sum_j exp(x_j - m),  m = the largest (real part of) x
///   backward   dx_i += dy_i - exp(y_i) sum_j dy_j
///
/// Shapes   x, y: any of rank 1 and above.
/// Saves    y.
/// Throws   ShapeError for an axis outside the rank; RangeError for a line of only -infinity: it has no distribution.
template <class S>
Var<S> log_softmax(Var<S> x, int axis = -1);

/// Along the last axis.
template <class S>
void log_softmax_forward(View<const S> x, View<S> y);
template <class S>
void log_softmax_backward(View<const S> y, View<const S> dy, View<S> dx);

}  // namespace handgrad
