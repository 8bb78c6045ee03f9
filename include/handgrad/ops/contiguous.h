#pragma once

#include "handgrad/autograd/var.h"

namespace handgrad {

/// A view copied into memory of its own, row-major: for views with exchanged axes, before they are read as rows.
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
