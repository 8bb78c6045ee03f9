#pragma once

#include <fmt/format.h>

#include "handgrad/core/errors.h"
#include "handgrad/ops/attention_options.h"
#include "handgrad/ops/causal_attention.h"
#include "ops/check.h"

// What tiled attention asks of its arguments.

namespace handgrad {

inline void check_attention(const Shape& a, const Shape& b, const Shape& c, const AttentionOptions& options) {
  const bool ranks = a.rank() == 4 && b.rank() == 4 && c.rank() == 4;
  if (!ranks || a[0] != b[0] || b[0] != c[0] || a[3] != b[3] || b[1] != c[1] || b[2] != c[2] || a[2] % b[2] != 0) {
    throw ShapeError(
        fmt::format("attention: q (B, Q, H, D), k (B, K, H_kv, D) and v (B, K, H_kv, Dv), H a multiple of "
                    "H_kv, are needed, got {}, {} and {}",
                    a.to_string(), b.to_string(), c.to_string()));
  }
  if (options.causal && a[1] > b[1]) {
    throw ShapeError(
        fmt::format("attention: causal needs as many keys as queries or more, got Q = {} and K = {}", a[1], b[1]));
  }
  if (options.query_tile < 1 || options.key_tile < 1) {
    throw RangeError(fmt::format("attention: tiles have at least 1 row and column, got {} and {}", options.query_tile,
                                 options.key_tile));
  }
  if (!(options.dropout.probability >= 0.0 && options.dropout.probability < 1.0)) {
    throw RangeError(
        fmt::format("attention: the dropout probability lies in [0, 1), got {}", options.dropout.probability));
  }
  const Shape scores{a[0], a[2], a[1], b[1]};
  if (options.mask && broadcast_shape(scores, options.mask.shape, "attention mask") != scores) {
    throw ShapeError(
        fmt::format("attention: a mask {} does not fit scores {}", options.mask.shape.to_string(), scores.to_string()));
  }
}

template <class S>
void check_attention(const Var<S>& q, const Var<S>& k, const Var<S>& v, const AttentionOptions& options) {
  check_attention(q.shape(), k.shape(), v.shape(), options);
}

template <class S>
void check_attention(const AttentionInputs<S>& in, const AttentionOptions& options) {
  require_memory("attention", {in.q.data, in.k.data, in.v.data});
  const auto shape = [](const Heads<const S>& x) { return Shape{x.batch, x.time, x.heads, x.width}; };
  check_attention(shape(in.q), shape(in.k), shape(in.v), options);
}

/// The extents of the output, without memory.
template <class S>
Heads<const S> attention_output(const AttentionInputs<S>& in) {
  return {nullptr, in.q.batch, in.q.time, in.q.heads, in.v.width};
}

/// Throws ShapeError unless x has memory and the extents of `like`.
template <class T, class U>
void require_heads(const char* kernel, const Heads<T>& x, const Heads<U>& like) {
  if (x && x.batch == like.batch && x.time == like.time && x.heads == like.heads && x.width == like.width) return;
  throw ShapeError(fmt::format("{}: heads ({}, {}, {}, {}) with memory are needed, got ({}, {}, {}, {})", kernel,
                               like.batch, like.time, like.heads, like.width, x.batch, x.time, x.heads, x.width));
}

}  // namespace handgrad
