#pragma once

#include "handgrad/autograd/var.h"

namespace handgrad {

/// Square of the rectified linear unit.
///
///   forward    y = x^2 for x >= 0, else 0; NaN for NaN
///   backward   dx += dy 2x for x > 0, else 0
///
/// Shapes   x, y: any of rank 1 and above.
/// Saves    x.
/// Throws   ShapeError for rank 0 or rows of elements that are not adjacent (contiguous makes a copy).
/// Source   So et al. 2021, Primer, arXiv:2109.08668.
template <class S>
Var<S> relu_squared(Var<S> x);

template <class S>
void relu_squared_forward(Rows<const S> x, Rows<S> y);
template <class S>
void relu_squared_backward(Rows<const S> x, Rows<const S> dy, Rows<S> dx);

}  // namespace handgrad
