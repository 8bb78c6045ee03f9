#pragma once

#include <span>

#include "handgrad/autograd/var.h"
#include "handgrad/ops/loss_options.h"
#include "handgrad/ops/row_statistics.h"

namespace handgrad {

/// The head of a language model and its loss in one operation: logits = x W^T, then their mean cross-entropy.
///
///   forward    y = cross_entropy(x W^T, targets)
///   backward   G = (p - q) / N;  dx += dy G W,  dW += dy G^T x, slab by slab of rows
///
/// If all logits fit into options.logits_budget_bytes, they are stored and overwritten with p - q; else the backward
/// pass recomputes them, slab by slab. Both ways compute the same products in the same order and give the same bits.
///
/// Shapes   x: (..., C), weight: (V, C); targets: one per row; y: ().
/// Saves    x, weight, targets; p - q, or m and log l of cross_entropy, one of each per row.
/// Throws   ShapeError unless the shapes are as stated, and the errors of cross_entropy.
template <class S>
Var<S> linear_cross_entropy(Var<S> x, Var<S> weight, std::span<const TokenId> targets, const LossOptions& options = {});

template <class S>
struct LossHeadInputs {
  Rows<const S> x, weight;
  std::span<const TokenId> targets;
  Index block = 0;  ///< Rows in a block of sequences.
};
template <class S>
struct LossHeadMemory {
  Rows<S> logits;  ///< All rows if they are kept, else one slab.
  bool kept = false;
  SoftmaxStatistics<S> statistics;
  std::span<S> losses;  ///< One per row.
};

/// Leaves p - q in memory.logits if logits are kept and `differentiate` is true.
template <class S>
void linear_cross_entropy_forward(const LossHeadInputs<S>& in, const LossOptions& options, bool differentiate,
                                  const LossHeadMemory<S>& memory);

template <class S>
struct LossHeadGradients {
  Rows<S> dx, dweight;  ///< Empty: no gradient needed.
};
/// factor is dy / N.
template <class S>
void linear_cross_entropy_backward(const LossHeadInputs<S>& in, const LossOptions& options,
                                   const LossHeadMemory<S>& memory, S factor, const LossHeadGradients<S>& gradients);

}  // namespace handgrad
