#pragma once

#include <span>

#include "handgrad/autograd/var.h"
#include "handgrad/ops/positions.h"

namespace handgrad {

/// Rows of a table, selected by id.
///
///   forward    y[i] = table[ids[i]]
///   backward   dtable[ids[i]] += dy[i], in the order of i, for any number of threads
///
/// Shapes   table: (V, C); ids: as many as `shape` has elements; y: `shape` with C appended.
/// Saves    ids.
/// Throws   ShapeError if the number of ids differs from the shape; RangeError for an id outside [0, V); the
///          message has index, id and V.
template <class S>
Var<S> embedding(Var<S> table, std::span<const TokenId> ids, const Shape& shape);

/// The same with positions as ids, for learned position embeddings: y is (B, T, C).
template <class S>
Var<S> embedding(Var<S> table, PositionsRef positions, Index batch);

template <class S, class Id>
void embedding_forward(Rows<const S> table, std::span<const Id> ids, Rows<S> y);
template <class S, class Id>
void embedding_backward(std::span<const Id> ids, Rows<const S> dy, Rows<S> dtable);

}  // namespace handgrad
