#pragma once

#include <fmt/format.h>

#include "handgrad/core/errors.h"
#include "handgrad/ops/attention_options.h"
#include "handgrad/ops/causal_attention.h"
#include "ops/check.h"

// The rules for the arguments of attention, with one message per rule.

namespace handgrad {

inline void check_attention_options(const char* operation, const AttentionOptions& options) {
  if (options.query_tile < 1) {
    throw RangeError(fmt::format("{}: query_tile must be 1 or more, got {}", operation, options.query_tile));
  }
  if (options.key_tile < 1) {
    throw RangeError(fmt::format("{}: key_tile must be 1 or more, got {}", operation, options.key_tile));
  }
  if (!(options.dropout.probability >= 0.0 && options.dropout.probability < 1.0)) {
    throw RangeError(
        fmt::format("{}: the dropout probability must be in [0, 1), got {}", operation, options.dropout.probability));
  }
}

/// For q (B, Q, H, D), k (B, K, H_kv, D) and v (B, K, H_kv, Dv).
inline void check_attention(const char* operation, const Shape& q, const Shape& k, const Shape& v,
                            const AttentionOptions& options) {
  const auto fail = [&](const std::string& rule) { throw ShapeError(fmt::format("{}: {}", operation, rule)); };
  const auto text = [](const Shape& shape) { return shape.to_string(); };
  if (q.rank() != 4 || k.rank() != 4 || v.rank() != 4) {
    fail(fmt::format("q, k and v must be heads of rank 4 (batch, time, head, width), got {}, {} and {}", text(q),
                     text(k), text(v)));
  }
  if (q[0] != k[0] || k[0] != v[0]) {
    fail(fmt::format("q, k and v must have the same batch, got {}, {} and {}", q[0], k[0], v[0]));
  }
  if (k[1] != v[1]) fail(fmt::format("there must be one value per key, got {} keys and {} values", k[1], v[1]));
  if (k[2] != v[2]) fail(fmt::format("k and v must have the same n_kv_heads, got {} and {}", k[2], v[2]));
  if (q[2] % k[2] != 0) {
    fail(fmt::format("n_heads must be a multiple of n_kv_heads, got {} and {}", q[2], k[2]));
  }
  if (q[3] != k[3]) fail(fmt::format("q and k must have the same head width, got {} and {}", q[3], k[3]));
  if (options.causal && q[1] > k[1]) {
    fail(fmt::format("causal attention needs at least one key per query, got {} queries and {} keys", q[1], k[1]));
  }
  check_attention_options(operation, options);
  const Shape scores{q[0], q[2], q[1], k[1]};
  if (options.mask && broadcast_shape(scores, options.mask.shape, operation) != scores) {
    fail(fmt::format("the mask must broadcast to the scores {}, got {}", text(scores), text(options.mask.shape)));
  }
}

template <class S>
void check_attention(const char* operation, const Var<S>& q, const Var<S>& k, const Var<S>& v,
                     const AttentionOptions& options) {
  check_attention(operation, q.shape(), k.shape(), v.shape(), options);
}

template <class S>
void check_attention(const char* kernel, const AttentionInputs<S>& in, const AttentionOptions& options) {
  require_memory(kernel, {in.q.data, in.k.data, in.v.data});
  const auto shape = [](const Heads<const S>& x) { return Shape{x.batch, x.time, x.heads, x.width}; };
  check_attention(kernel, shape(in.q), shape(in.k), shape(in.v), options);
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

/// Throws ShapeError unless there is one element of each statistic per query and head.
template <class S, class T>
void require_statistics(const char* kernel, const SoftmaxStatistics<S>& statistics, const Heads<const T>& q) {
  const Index rows = q.batch * q.heads * q.time;
  require_size(kernel, "row maxima", statistics.row_max.size(), rows);
  require_size(kernel, "log-sums", statistics.log_sum.size(), rows);
}

}  // namespace handgrad
