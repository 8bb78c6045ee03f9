#include "handgrad/ops/scaled_dot_product_attention.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "core/instantiate.h"
#include "handgrad/core/errors.h"
#include "handgrad/ops/dropout.h"
#include "handgrad/ops/masked_fill.h"
#include "handgrad/ops/matmul.h"
#include "handgrad/ops/softmax.h"
#include "ops/broadcast.h"

namespace handgrad {
namespace {

// True where a key is hidden, in the smallest shape that tells: (Q, K), or the mask's own shape joined with it. The
// memory is this thread's, good until the next call, so that a step allocates nothing.
MaskRef hidden_scores(const Shape& scores, const AttentionOptions& options) {
  const Index queries = scores[-2], keys = scores[-1];
  const Shape last_two{queries, keys};
  if (options.mask && broadcast_shape(scores, options.mask.shape, "attention mask") != scores) {
    throw ShapeError(
        fmt::format("attention: a mask {} does not fit scores {}", options.mask.shape.to_string(), scores.to_string()));
  }
  const Shape shape = options.mask ? broadcast_shape(options.mask.shape, last_two, "attention mask") : last_two;
  const MaskRef mask = options.mask ? broadcast_view(options.mask, shape) : MaskRef{};
  thread_local Buffer<std::uint8_t> hidden;
  if (hidden.size() < shape.size()) hidden = Buffer<std::uint8_t>(shape.size());
  for (Index r = 0; r < shape.size() / keys; ++r) {
    const Index last_visible = options.causal ? r % queries + (keys - queries) : keys - 1;
    const std::uint8_t* allowed = mask ? row_start(mask, r) : nullptr;
    for (Index j = 0; j < keys; ++j) {
      hidden[r * keys + j] = j > last_visible || (allowed && !allowed[j * last_stride(mask)]);
    }
  }
  return {hidden.data(), shape, dense_strides(shape)};
}

}  // namespace

template <class S>
Var<S> scaled_dot_product_attention(Var<S> q, Var<S> k, Var<S> v, const AttentionOptions& options) {
  if (q.shape().rank() < 2 || k.shape().rank() < 2 || v.shape().rank() < 2 || q.extent(-1) != k.extent(-1) ||
      k.extent(-2) != v.extent(-2)) {
    throw ShapeError(
        fmt::format("attention: q (..., Q, D), k (..., K, D) and v (..., K, Dv) are needed, got {}, {} and {}",
                    q.shape().to_string(), k.shape().to_string(), v.shape().to_string()));
  }
  const Index queries = q.extent(-2), keys = k.extent(-2);
  if (options.causal && queries > keys) {
    throw ShapeError(
        fmt::format("attention: causal needs as many keys as queries or more, got Q = {} and K = {}", queries, keys));
  }
  const double scale = options.scale != 0.0 ? options.scale : 1.0 / std::sqrt(static_cast<double>(q.extent(-1)));
  Var<S> scores = matmul(std::move(q), k.transpose(-1, -2), scale);
  if (options.causal || options.mask) {
    const MaskRef hidden = hidden_scores(scores.shape(), options);
    scores = masked_fill(std::move(scores), hidden, -std::numeric_limits<double>::infinity());
  }
  return matmul(dropout(softmax(std::move(scores)), options.dropout), std::move(v));
}

#define HANDGRAD_INSTANTIATE(S) \
  template Var<S> scaled_dot_product_attention<S>(Var<S>, Var<S>, Var<S>, const AttentionOptions&);
HANDGRAD_FOR_ALL_SCALARS(HANDGRAD_INSTANTIATE)
#undef HANDGRAD_INSTANTIATE

}  // namespace handgrad
