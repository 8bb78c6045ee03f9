#pragma once

#include <span>

#include "handgrad/autograd/var.h"

namespace handgrad {

/// Affine map of the last axis.
///
///   forward    y = x W^T + b
///   backward   dx += dy W,  dW += dy^T x,  db += sum over rows of dy
///              dW and db are sums over blocks of sequences, in order: splitting a batch at blocks changes no bit
///
/// Shapes   x: (..., in), weight: (out, in), bias: (out) or an empty handle, y: (..., out).
/// Saves    x, weight.
/// Throws   ShapeError unless the shapes are as stated; also for rows of elements that are not adjacent.
template <class S>
Var<S> linear(Var<S> x, Var<S> weight, Var<S> bias);

template <class S>
struct LinearGradients {
  Rows<S> dx, dweight;  ///< Empty: no gradient needed.
  std::span<S> dbias;
};

/// `block`: rows in a block of sequences (gemm.h, block_rows). `bias` may be empty.
template <class S>
void linear_forward(Rows<const S> x, Rows<const S> weight, std::span<const S> bias, Index block, Rows<S> y);
template <class S>
void linear_backward(Rows<const S> x, Rows<const S> weight, Index block, Rows<const S> dy,
                     LinearGradients<S> gradients);

}  // namespace handgrad
