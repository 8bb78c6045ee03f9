#pragma once

#include "handgrad/autograd/var.h"

namespace handgrad {

/// The gate of a SwiGLU feed-forward layer.
///
///   forward    y = silu(g) u,  silu(g) = g s,  s = 1 / (1 + e^-g)
///   backward   dg += dy u s (1 + g (1 - s)),  du += dy silu(g)
///
/// Shapes   gate, up, y: equal, of rank 1 and above.
/// Saves    gate, up.
/// Throws   ShapeError if the shapes differ, for rank 0, or for rows of elements that are not adjacent.
/// Source   Shazeer 2020, GLU variants improve transformer, arXiv:2002.05202, section 2.
template <class S>
Var<S> swiglu(Var<S> gate, Var<S> up);

template <class S>
void swiglu_forward(Rows<const S> gate, Rows<const S> up, Rows<S> y);
/// Either gradient may be an empty view.
template <class S>
void swiglu_backward(Rows<const S> gate, Rows<const S> up, Rows<const S> dy, Rows<S> dgate, Rows<S> dup);

}  // namespace handgrad
