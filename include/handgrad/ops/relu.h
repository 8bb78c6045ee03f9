#pragma once

#include "handgrad/autograd/var.h"

namespace handgrad {

/// Rectified linear unit.
///
///   forward    y = x for x >= 0, else 0; NaN for NaN
///   backward   dx += dy for x > 0, else 0 (also at x = 0, where the function has no derivative)
///
/// Shapes   x, y: any of rank 1 and above.
/// Saves    x.
/// Throws   ShapeError for rank 0 or rows of elements that are not adjacent (contiguous makes a copy).
/// Source   Nair and Hinton 2010, Rectified linear units improve restricted Boltzmann machines.
template <class S>
Var<S> relu(Var<S> x);

template <class S>
void relu_forward(Rows<const S> x, Rows<S> y);
template <class S>
void relu_backward(Rows<const S> x, Rows<const S> dy, Rows<S> dx);

}  // namespace handgrad
