#pragma once

#include "handgrad/autograd/var.h"
#include "handgrad/ops/mask.h"

namespace handgrad {

/// Replaces elements by a constant where a mask is true.
///
///   forward    y = value where mask is true, else x
///   backward   dx += 0 where mask is true, else dy
///
/// Shapes   x, y: any of rank 1 and above; mask: broadcastable to x.
/// Saves    the mask.
/// Throws   ShapeError without a mask, or unless the mask broadcasts to x.
template <class S>
Var<S> masked_fill(Var<S> x, MaskRef mask, double value);

template <class S>
void masked_fill_forward(View<const S> x, MaskRef mask, double value, View<S> y);
template <class S>
void masked_fill_backward(MaskRef mask, View<const S> dy, View<S> dx);

}  // namespace handgrad
