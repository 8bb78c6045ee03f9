#pragma once

#include "handgrad/autograd/var.h"

namespace handgrad {

/// Concatenation of two values along an axis. Its inverse, Var::slice, is a view.
///
///   forward    y = [a, b]
///   backward   da += the first part of dy,  db += the rest
///
/// Shapes   a, b: equal but for the extent of `axis`; y: the same, with the sum of both extents.
/// Saves    nothing.
/// Throws   ShapeError unless the shapes are equal but for `axis`, or for an axis outside the rank.
template <class S>
Var<S> concat(Var<S> a, Var<S> b, int axis);

/// The two parts of y along the axis.
template <class T>
struct ConcatParts {
  View<T> first, second;
};
template <class S>
void concat_forward(View<const S> a, View<const S> b, ConcatParts<S> y);
/// Either gradient may be an empty view.
template <class S>
void concat_backward(ConcatParts<const S> dy, View<S> da, View<S> db);

}  // namespace handgrad
