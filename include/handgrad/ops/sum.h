#pragma once

#include "handgrad/autograd/var.h"

namespace handgrad {

/// Sum of all elements. Accumulated in double.
///
///   forward    y = sum of x
///   backward   dx += dy
///
/// Shapes   x: any; y: ().
/// Saves    nothing.
template <class S>
Var<S> sum(Var<S> x);

template <class S>
void sum_forward(View<const S> x, S& y);
template <class S>
void sum_backward(S dy, View<S> dx);

}  // namespace handgrad
