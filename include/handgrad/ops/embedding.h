#pragma once

#include <span>

#include "handgrad/autograd/var.h"
#include "handgrad/ops/positions.h"

namespace handgrad {

/// Rows of a table, one for each token.
///
///   forward    y[i] = table[ids[i]]
///   backward   dtable[ids[i]] += dy[i], in the order of i: equal ids add up, and no thread's timing matters
///
/// Shapes   table: (V, C); ids: as many as `shape` has elements; y: `shape` with C appended.
/// Saves    ids.
/// Throws   ShapeError if the number of ids differs from the shape; RangeError for an id outside [0, V), naming its
///          index, its value and V.
template <class S>
Var<S> embedding(Var<S> table, std::span<const TokenId> ids, const Shape& shape);

/// The same with positions as ids: rows of a table of learned positions, (B, T, C).
template <class S>
Var<S> embedding(Var<S> table, PositionsRef positions, Index batch);

template <class S, class Id>
void embedding_forward(Rows<const S> table, std::span<const Id> ids, Rows<S> y);
template <class S, class Id>
void embedding_backward(std::span<const Id> ids, Rows<const S> dy, Rows<S> dtable);

}  // namespace handgrad
