#pragma once

#include <span>

#include "handgrad/autograd/var.h"

namespace handgrad {

/// Root-mean-square normalisation of the last axis.
///
///   forward    h = x r,  r = 1 / sqrt(mean(x^2) + eps),  y = h w
///   backward   g = dy w;  dx += r (g - h mean(g h));  dw += sum of dy h, over blocks of sequences, in order
///
/// The mean of squares is accumulated in double, in which the square of a float cannot overflow.
///
/// Shapes   x, y: (..., C), of any strides but the last; weight: (C).
/// Saves    x, weight; r, one per row.
/// Throws   ShapeError unless the shapes are as stated, or if the last axis is not adjacent; RangeError unless eps >=
///          0.
/// Source   Zhang and Sennrich 2019, arXiv:1910.07467, section 4.
template <class S>
Var<S> rms_norm(Var<S> x, Var<S> weight, double eps = 1e-5);

/// inverse[r]: 1 / sqrt(mean(x^2) + eps) of row r. Rows are all axes but the last.
template <class S>
void rms_norm_forward(View<const S> x, std::span<const S> weight, double eps, std::span<S> inverse, View<S> y);

template <class S>
struct RmsNormSaved {
  View<const S> x;
  std::span<const S> weight, inverse;
};
/// `block`: rows in a block of sequences. `dx` and `dweight` may be empty.
template <class S>
void rms_norm_backward(const RmsNormSaved<S>& saved, Index block, View<const S> dy, View<S> dx, std::span<S> dweight);

}  // namespace handgrad
