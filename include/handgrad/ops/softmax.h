#pragma once

#include "handgrad/autograd/var.h"

namespace handgrad {

/// Softmax along an axis.
///
///   forward    y_i = exp(x_i - m) / sum_j exp(x_j - m),  m = the largest (real part of) x: no exponent overflows
///   backward   dx_i += y_i (dy_i - sum_j dy_j y_j)
///
/// A line of only -infinity (all masked) gives zeros and zero gradients.
///
/// Shapes   x, y: any of rank 1 and above.
/// Saves    y.
/// Throws   ShapeError for an axis outside the rank.
/// Source   Goodfellow et al. 2016, Deep learning, section 4.1 (the shift by m).
template <class S>
Var<S> softmax(Var<S> x, int axis = -1);

/// Along the last axis.
template <class S>
void softmax_forward(View<const S> x, View<S> y);
template <class S>
void softmax_backward(View<const S> y, View<const S> dy, View<S> dx);

}  // namespace handgrad
