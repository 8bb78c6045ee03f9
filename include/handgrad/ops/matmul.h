#pragma once

#include "handgrad/autograd/var.h"

namespace handgrad {

/// Product of matrices, for every index of the leading axes.
///
///   forward    y = factor a b
///   backward   da += factor dy b^T,  db += factor a^T dy;  an operand that was broadcast gets the sum
///
/// Shapes   a: (..., M, K), b: (..., K, N), y: (..., M, N); leading axes are broadcast. A transposed operand is a view:
///          Var::transpose(-1, -2). One of an operand's last two axes has stride 1.
/// Saves    a, b.
/// Throws   ShapeError for a rank below 2, unless K is the same and the leading axes broadcast, or if neither of the
///          last two axes of an operand has stride 1.
template <class S>
Var<S> matmul(Var<S> a, Var<S> b, double factor = 1.0);

template <class S>
void matmul_forward(View<const S> a, View<const S> b, double factor, View<S> y);
/// Either gradient may be an empty view.
template <class S>
void matmul_backward(View<const S> a, View<const S> b, double factor, View<const S> dy, View<S> da, View<S> db);

}  // namespace handgrad
