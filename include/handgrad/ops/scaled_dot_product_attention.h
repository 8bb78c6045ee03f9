#pragma once

#include "handgrad/autograd/var.h"
#include "handgrad/ops/attention_options.h"

namespace handgrad {

/// Attention as the composition of matmul, masked_fill, softmax, dropout and matmul. It stores all Q x K scores;
/// causal_attention computes the same without them.
///
///   forward    y = softmax(mask(scale q k^T)) v
///   backward   that of its parts
///
/// A query that sees no key gives zeros and zero gradients. A hidden key or value, finite or not, changes no bit of the
/// results of a query in both passes: a row of q, k, v or dy that is not finite is added only to rows that see it.
/// (Both products therefore read the mask; matmul itself does not.) A visible NaN propagates.
///
/// Shapes   q: (..., Q, D), k: (..., K, D), v: (..., K, Dv), y: (..., Q, Dv); leading axes are broadcast.
/// Saves    the values that its parts save, and the mask combined with the causal rule.
/// Throws   ShapeError unless the shapes are as stated, or for causal with more queries than keys; RangeError for a
///          dropout probability outside [0, 1).
/// Source   Vaswani et al. 2017, Attention is all you need, arXiv:1706.03762, section 3.2.1.
template <class S>
Var<S> scaled_dot_product_attention(Var<S> q, Var<S> k, Var<S> v, const AttentionOptions& options = {});

}  // namespace handgrad
