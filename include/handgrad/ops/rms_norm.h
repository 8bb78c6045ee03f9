#pragma once

#include "handgrad/autograd/var.h"

namespace handgrad {

/// Root-mean-square normalisation of the last axis.
///
///   forward    h = x r,  r = 1 / sqrt(mean(x^2) + eps),  y = h w
///   backward   g = dy w;  dx += r (g - h mean(g h));  dw += sum of dy h, over blocks of sequences, in order
///
/// The mean of squares is accumulated in double, where the square of no float overflows.
///
/// Shapes   x, y: (..., C), or heads (B, T, H, D) in a view; weight: (C).
/// Saves    x, weight, r a row.
/// Throws   ShapeError if the shapes do not fit together.
/// Source   Zhang and Sennrich 2019, arXiv:1910.07467, section 4.
template <class S>
Var<S> rms_norm(Var<S> x, Var<S> weight, double eps = 1e-5);

/// inverse[r]: 1 / sqrt(mean(x^2) + eps) of row r. Rows are all axes but the last.
template <class S>
void rms_norm_forward(View<const S> x, const S* weight, double eps, S* inverse, View<S> y);
/// `block`: rows in a block of sequences. `dx` may be empty, `dweight` null.
template <class S>
struct RmsNormSaved {
  View<const S> x;
  const S* weight;
  const S* inverse;
};
template <class S>
void rms_norm_backward(const RmsNormSaved<S>& saved, Index block, View<const S> dy, View<S> dx, S* dweight);

}  // namespace handgrad
