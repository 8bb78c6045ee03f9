#pragma once

#include "handgrad/autograd/var.h"

namespace handgrad {

/// Sigmoid linear unit (swish).
///
///   forward    y = x s,  s = 1 / (1 + e^-x)
///   backward   dx += dy s (1 + x (1 - s))
///
/// Shapes   x, y: any of rank 1 and above.
/// Saves    x.
/// Throws   ShapeError for rank 0 or rows of elements that are not adjacent (contiguous makes a copy).
/// Source   Elfwing et al. 2017, arXiv:1702.03118; Ramachandran et al. 2017, arXiv:1710.05941.
template <class S>
Var<S> silu(Var<S> x);

template <class S>
void silu_forward(Rows<const S> x, Rows<S> y);
template <class S>
void silu_backward(Rows<const S> x, Rows<const S> dy, Rows<S> dx);

}  // namespace handgrad
