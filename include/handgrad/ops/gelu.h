#pragma once

#include "handgrad/autograd/var.h"

namespace handgrad {

/// Gaussian error linear unit, exact.
///
///   forward    y = x Phi(x),  Phi(x) = (1 + erf(x / sqrt 2)) / 2
///   backward   dx += dy (Phi(x) + x phi(x)),  phi(x) = exp(-x^2/2) / sqrt(2 pi)
///
/// Shapes   x, y: any of rank 1 and above.
/// Saves    x.
/// Throws   ShapeError for rank 0 or rows of elements that are not adjacent (contiguous makes a copy).
/// Source   Hendrycks and Gimpel 2016, arXiv:1606.08415, section 2.
template <class S>
Var<S> gelu(Var<S> x);

template <class S>
void gelu_forward(Rows<const S> x, Rows<S> y);
template <class S>
void gelu_backward(Rows<const S> x, Rows<const S> dy, Rows<S> dx);

}  // namespace handgrad
