#pragma once

#include "handgrad/autograd/var.h"

namespace handgrad {

/// Sum of two values, broadcast.
///
///   forward    y = a + b
///   backward   da += dy,  db += dy;  an operand that was broadcast gets the sum over the axes along which it
///              was repeated
///
/// Shapes   a, b: any, axes matched from the last, extents equal or 1; y: the larger of each.
/// Saves    nothing.
/// Throws   ShapeError unless the shapes broadcast: equal extents, or 1, from the last axis.
template <class S>
Var<S> add(Var<S> a, Var<S> b);

template <class S>
void add_forward(View<const S> a, View<const S> b, View<S> y);
/// Either gradient may be an empty view.
template <class S>
void add_backward(View<const S> dy, View<S> da, View<S> db);

}  // namespace handgrad
