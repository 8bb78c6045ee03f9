#pragma once

#include <span>

#include "handgrad/autograd/var.h"
#include "handgrad/ops/loss_options.h"
#include "handgrad/ops/row_statistics.h"

namespace handgrad {

/// Mean cross-entropy of rows of logits against target classes.
///
///   forward    row loss = -sum_i q_i ((x_i - m) - log l),  m = max x,  l = sum exp(x - m),
///              q = (1 - eps) [i = target] + eps / V;   y = sum of row losses / N
///   backward   dx += dy (p - q) / N,  p = exp((x - m) - log l)
///
/// N is the number of targets that are not ignored, or options.divisor. If it is 0, y and dx are 0. With eps = 0
/// a class with logit -infinity does not contribute; with eps > 0 it gives a loss of +infinity.
///
/// Shapes   logits: (..., V); targets: one per row; y: ().
/// Saves    logits, targets; m and log l, one of each per row.
/// Throws   ShapeError if the number of targets differs from the rows; RangeError for a target outside [0, V) that is
///          not ignored (the message has row, value and V), for label smoothing outside [0, 1] and for options below 0.
/// Source   Szegedy et al. 2015, arXiv:1512.00567, section 7 (label smoothing).
template <class S>
Var<S> cross_entropy(Var<S> logits, std::span<const TokenId> targets, const LossOptions& options = {});

/// losses: one per row, 0 for an ignored target.
template <class S>
void cross_entropy_forward(Rows<const S> logits, std::span<const TokenId> targets, const LossOptions& options,
                           SoftmaxStatistics<S> statistics, std::span<S> losses);
/// factor is dy / N.
template <class S>
void cross_entropy_backward(Rows<const S> logits, std::span<const TokenId> targets, const LossOptions& options,
                            SoftmaxStatistics<const S> statistics, S factor, Rows<S> dlogits);

}  // namespace handgrad
