#pragma once

#include "handgrad/autograd/var.h"
#include "handgrad/ops/row_statistics.h"

namespace handgrad {

/// Layer normalisation of the last axis.
///
///   forward    h = (x - mean) r,  r = 1 / sqrt(variance + eps),  y = h w + b   (variance over C, not C - 1)
///   backward   g = dy w;  dx += r (g - mean(g) - h mean(g h));  dw += sum of dy h;  db += sum of dy
///              dw and db are sums over blocks of sequences, in order
///
/// Mean and variance are accumulated in double, in which the square of a float cannot overflow. A constant row gives b.
///
/// Shapes   x, y: (..., C); weight, bias: (C), bias may be an empty handle.
/// Saves    x, weight; mean and r, one of each per row.
/// Throws   ShapeError unless the shapes are as stated, or for rows of elements that are not adjacent; RangeError
///          unless eps >= 0.
/// Source   Ba et al. 2016, arXiv:1607.06450, section 3.
template <class S>
Var<S> layer_norm(Var<S> x, Var<S> weight, Var<S> bias, double eps = 1e-5);

template <class S>
struct NormGradients {
  Rows<S> dx;
  std::span<S> dweight, dbias;  ///< Empty: no gradient needed.
};

/// `bias` may be empty.
template <class S>
void layer_norm_forward(Rows<const S> x, std::span<const S> weight, std::span<const S> bias, double eps,
                        LayerNormStatistics<S> statistics, Rows<S> y);
/// `block`: rows in a block of sequences (gemm.h, block_rows).
template <class S>
void layer_norm_backward(Rows<const S> x, std::span<const S> weight, LayerNormStatistics<const S> statistics,
                         Index block, Rows<const S> dy, NormGradients<S> gradients);

}  // namespace handgrad
