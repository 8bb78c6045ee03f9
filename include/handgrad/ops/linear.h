#pragma once

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
/// Throws   ShapeError if the shapes do not fit together.
template <class S>
Var<S> linear(Var<S> x, Var<S> weight, Var<S> bias);

template <class S>
struct LinearGradients {
  Rows<S> dx, dweight;  ///< Empty where no gradient is wanted.
  S* dbias = nullptr;
};

/// `block`: rows in a block of sequences (gemm.h, block_rows). `bias` may be null.
template <class S>
void linear_forward(Rows<const S> x, Rows<const S> weight, const S* bias, Index block, Rows<S> y);
template <class S>
void linear_backward(Rows<const S> x, Rows<const S> weight, Index block, Rows<const S> dy,
                     LinearGradients<S> gradients);

}  // namespace handgrad
