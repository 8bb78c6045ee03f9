#pragma once

#include "handgrad/autograd/var.h"

namespace handgrad {

/// Gaussian error linear unit, tanh form (GPT-2's).
///
///   forward    y = x (1 + tanh u) / 2 = x s(2u),  u = sqrt(2/pi) (x + 0.044715 x^3),  s(z) = 1 / (1 + e^-z)
///   backward   dx += dy (s + x s (1 - s) 2 du/dx),  du/dx = sqrt(2/pi) (1 + 3 x 0.044715 x^2)
///
/// Shapes   x, y: any of rank 1 and above.
/// Saves    x.
/// Throws   ShapeError for rank 0 or rows of elements that are not adjacent (contiguous makes a copy).
/// Source   Hendrycks and Gimpel 2016, arXiv:1606.08415, section 2.
template <class S>
Var<S> gelu_tanh(Var<S> x);

template <class S>
void gelu_tanh_forward(Rows<const S> x, Rows<S> y);
template <class S>
void gelu_tanh_backward(Rows<const S> x, Rows<const S> dy, Rows<S> dx);

}  // namespace handgrad
