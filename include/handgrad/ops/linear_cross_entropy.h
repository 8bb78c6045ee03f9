#pragma once

#include <span>

#include "handgrad/autograd/var.h"
#include "handgrad/ops/loss_options.h"

namespace handgrad {

/// The head of a language model and its loss in one: logits = x W^T, then their mean cross-entropy, by slabs of rows.
///
///   forward    y = cross_entropy(x W^T, targets)
///   backward   G = (p - q) / N;  dx += dy G W,  dW += dy G^T x, slab by slab in order
///
/// If all logits fit into options.logits_budget_bytes they are kept, turned in place into p - q; else backward computes
/// them again, slab by slab. Both ways do the same products in the same order: the same bits.
///
/// Shapes   x: (..., C), weight: (V, C); targets: one a row; y: ().
/// Saves    x, weight, targets, and p - q, or maximum and log-sum a row.
/// Throws   as cross_entropy.
template <class S>
Var<S> linear_cross_entropy(Var<S> x, Var<S> weight, std::span<const TokenId> targets, const LossOptions& options = {});

template <class S>
struct HeadInputs {
  Rows<const S> x, weight;
  std::span<const TokenId> targets;
  Index block = 0;  ///< Rows in a block of sequences.
};
template <class S>
struct HeadMemory {
  Rows<S> logits;  ///< All of them if kept, else one slab.
  bool kept = false;
  S* statistics = nullptr;  ///< Maximum and log-sum a row.
  S* losses = nullptr;
};

/// Leaves p - q in memory.logits if they are kept and `differentiate`.
template <class S>
void linear_cross_entropy_forward(const HeadInputs<S>& in, const LossOptions& options, bool differentiate,
                                  const HeadMemory<S>& memory);
/// factor is dy / N.
template <class S>
struct HeadGradients {
  Rows<S> dx, dweight;  ///< Empty where no gradient is wanted.
};
template <class S>
void linear_cross_entropy_backward(const HeadInputs<S>& in, const LossOptions& options, const HeadMemory<S>& memory,
                                   S factor, const HeadGradients<S>& gradients);

}  // namespace handgrad
