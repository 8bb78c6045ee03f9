#pragma once

#include "handgrad/autograd/var.h"

namespace handgrad {

/// A row-major copy of a view, for operations that need rows of adjacent elements.
///
///   forward    y = x
///   backward   dx += dy
///
/// Shapes   x, y: any.
/// Saves    nothing.
template <class S>
Var<S> contiguous(Var<S> x);

template <class S>
void contiguous_forward(View<const S> x, View<S> y);
template <class S>
void contiguous_backward(View<const S> dy, View<S> dx);

}  // namespace handgrad
