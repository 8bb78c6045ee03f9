#pragma once

#include "handgrad/autograd/var.h"

namespace handgrad {

/// Product of two values, element by element, broadcast.
///
///   forward    y = a b
///   backward   da += dy b,  db += dy a;  an operand that was broadcast gets the sum over the axes along which it was
///              repeated
///
/// Shapes   a, b: any, axes matched from the last, extents equal or 1; y: the larger of each.
/// Saves    a, b.
/// Throws   ShapeError unless the shapes broadcast: equal extents, or 1, from the last axis.
template <class S>
Var<S> mul(Var<S> a, Var<S> b);

template <class S>
void mul_forward(View<const S> a, View<const S> b, View<S> y);
/// Either gradient may be an empty view.
template <class S>
void mul_backward(View<const S> a, View<const S> b, View<const S> dy, View<S> da, View<S> db);

}  // namespace handgrad
