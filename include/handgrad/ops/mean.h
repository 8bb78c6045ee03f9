#pragma once

#include "handgrad/autograd/var.h"

namespace handgrad {

/// Mean of all elements. Accumulated in double.
///
///   forward    y = sum of x / n
///   backward   dx += dy / n
///
/// Shapes   x: any; y: ().
/// Saves    nothing.
template <class S>
Var<S> mean(Var<S> x);

template <class S>
void mean_forward(View<const S> x, S& y);
template <class S>
void mean_backward(S dy, View<S> dx);

}  // namespace handgrad
