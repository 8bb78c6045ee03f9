#pragma once

#include "handgrad/autograd/var.h"
#include "handgrad/ops/dropout_mask.h"

namespace handgrad {

/// Inverted dropout: sets random elements to 0 and scales the others, so that the mean is preserved.
///
///   forward    y = m x,  m = 1/(1-p) for kept elements, 0 for others
///   backward   dx += m dy, with the same m, recomputed
///
/// Shapes   x, y: any of rank 1 and above; rows are counted over all axes but the last.
/// Saves    the mask's four numbers. With probability 0 it returns x itself.
/// Throws   RangeError unless 0 <= probability < 1; ShapeError for rank 0 or rows of elements that are not adjacent.
/// Source   Srivastava et al. 2014, Dropout, JMLR 15.
template <class S>
Var<S> dropout(Var<S> x, DropoutMask mask);

template <class S>
void dropout_forward(Rows<const S> x, const DropoutMask& mask, Rows<S> y);
template <class S>
void dropout_backward(const DropoutMask& mask, Rows<const S> dy, Rows<S> dx);

}  // namespace handgrad
