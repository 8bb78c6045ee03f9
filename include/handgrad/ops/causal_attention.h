#pragma once

#include "handgrad/autograd/var.h"
#include "handgrad/ops/attention_options.h"
#include "handgrad/ops/row_statistics.h"

namespace handgrad {

/// Attention over heads, tile by tile, with a running maximum. No Q x K matrix is stored, and hidden tiles are skipped.
///
///   forward    for each tile of keys:  s = scale q k^T,  m' = max(m, max s),  p = exp(s - m'),
///              l = l exp(m - m') + sum p,  y = y exp(m - m') + p v;   at the end y /= l
///   backward   p = exp(s - m - log l), recomputed tile by tile;  delta = sum(dy y), one per row
///              dv += p^T dy,  dp = dy v^T,  ds = scale p (dp - delta),  dq += ds k,  dk += ds^T q
///              with dropout, p in dv and dp are multiplied by the mask; delta includes it
///
/// Query head h uses key head floor(h / (H / H_kv)) (grouped queries). A query that sees no key gives zeros and zero
/// gradients. A hidden key or value, finite or not, changes no bit of the results of a query in both passes: hidden
/// scores are replaced, and a row of q, k, v or dy that is not finite is added only to rows that see it. A visible NaN
/// propagates. If a probability rounds to 1, its ds is exactly 0: with one visible key dq and dk are 0.
///
/// Shapes   q: (B, Q, H, D), k: (B, K, H_kv, D), v: (B, K, H_kv, Dv), y: (B, Q, H, Dv); views are read in place.
///          mask: broadcastable to (B, H, Q, K).
/// Saves    q, k, v, y; m and log l, one of each per row (m = +infinity for a row that sees nothing).
/// Throws   ShapeError unless the shapes are as stated, or for causal with more queries than keys; RangeError for a
///          dropout probability outside [0, 1) or a tile size below 1.
/// Source   Milakov and Gimelshein 2018, arXiv:1805.02867 (the running maximum); Dao et al. 2022, FlashAttention,
///          arXiv:2205.14135, section 3.1 (both passes by tiles) and appendix B.2 (delta).
template <class S>
Var<S> causal_attention(Var<S> q, Var<S> k, Var<S> v, const AttentionOptions& options = {});

template <class S>
struct AttentionInputs {
  Heads<const S> q, k, v;
};
template <class S>
struct AttentionSaved {
  Heads<const S> y;
  SoftmaxStatistics<const S> statistics;  ///< Rows (B, H, Q).
};
template <class S>
struct AttentionGradients {
  Heads<S> dq, dk, dv;  ///< Empty: no gradient needed.
};

template <class S>
void causal_attention_forward(const AttentionInputs<S>& in, const AttentionOptions& options,
                              SoftmaxStatistics<S> statistics, Heads<S> y);
template <class S>
void causal_attention_backward(const AttentionInputs<S>& in, const AttentionOptions& options,
                               const AttentionSaved<S>& saved, Heads<const S> dy,
                               const AttentionGradients<S>& gradients);

}  // namespace handgrad
