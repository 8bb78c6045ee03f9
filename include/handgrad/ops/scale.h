#pragma once

#include "handgrad/autograd/var.h"

namespace handgrad {

/// A value times a constant.
///
///   forward    y = factor x
///   backward   dx += factor dy
///
/// Shapes   x, y: any of rank 1 and above.
/// Saves    factor only.
/// Throws   ShapeError for rank 0 or rows of elements that are not adjacent (contiguous makes a copy).
template <class S>
Var<S> scale(Var<S> x, double factor);

template <class S>
void scale_forward(Rows<const S> x, double factor, Rows<S> y);
template <class S>
void scale_backward(Rows<const S> dy, double factor, Rows<S> dx);

}  // namespace handgrad
