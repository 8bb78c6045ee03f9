#include "handgrad/nn/causal_self_attention.h"

#include "core/instantiate.h"
#include "handgrad/core/errors.h"
#include "handgrad/nn/dropout_sites.h"
#include "handgrad/nn/kv_cache.h"
#include "handgrad/ops/causal_attention.h"
#include "handgrad/ops/contiguous.h"
#include "handgrad/ops/dropout.h"
#include "handgrad/ops/scaled_dot_product_attention.h"
#include "nn/check_config.h"

namespace handgrad {

template <class S>
CausalSelfAttention::CausalSelfAttention(ParameterStore<S>& store, const std::string& name, const ModelConfig& config,
                                         Index layer)
    : layer_(layer),
      heads_(resolved(config).n_heads),
      kv_heads_(config.n_kv_heads),
      rope_(config.position == PositionKind::rope),
      kind_(config.attention),
      qkv_(store, name + "/qkv", config.d_model,
           (config.n_heads + 2 * config.n_kv_heads) * (config.d_model / config.n_heads), config.bias),
      out_(store, name + "/out", config.d_model, config.d_model, config.bias, ParameterRole::residual_matrix) {
  if (config.qk_norm) {
    const Index width = config.d_model / config.n_heads;
    q_norm_.emplace(store, name + "/q_norm", width, NormKind::rms, false, config.norm_eps);
    k_norm_.emplace(store, name + "/k_norm", width, NormKind::rms, false, config.norm_eps);
  }
}

template <class S>
Var<S> CausalSelfAttention::forward(const ForwardContext<S>& context, Var<S> x, const RopeTable<S>* table) const {
  const typename Tape<S>::Scope scope(context.tape, "attention");
  const Shape shape = x.shape();
  if (shape.rank() != 3 || shape[-1] % heads_ != 0) {
    throw ShapeError(fmt::format("attention layer: x (B, T, C) with C a multiple of {} heads is needed, got {}", heads_,
                                 shape.to_string()));
  }
  if (rope_ && !table) throw Error("attention layer: RoPE needs a table, got none");
  const Index width = shape[-1] / heads_;
  const Var<S> packed = qkv_.forward(context, std::move(x));
  const auto heads = [&](Index first, Index count) {
    return packed.slice(-1, first * width, count * width).split_last(count);
  };
  Var<S> q, k;
  if (q_norm_) {
    q = q_norm_->forward(context, heads(0, heads_));
    k = k_norm_->forward(context, heads(heads_, kv_heads_));
    if (rope_) {
      q = rope(std::move(q), context.positions, *table);
      k = rope(std::move(k), context.positions, *table);
    }
  } else {
    // Q and K are adjacent, and RoPE rotates every head alike: one operation for both.
    Var<S> qk = heads(0, heads_ + kv_heads_);
    if (rope_) qk = rope(std::move(qk), context.positions, *table);
    q = qk.slice(2, 0, heads_);
    k = qk.slice(2, heads_, kv_heads_);
  }
  Var<S> y = attend(context, std::move(q), std::move(k), heads(heads_ + kv_heads_, kv_heads_));
  y = out_.forward(context, y.reshape(shape));
  return dropout(std::move(y), context.dropout_mask(dropout_site(layer_, DropoutPlace::attention_output), shape[1]));
}

template <class S>
Var<S> CausalSelfAttention::attend(const ForwardContext<S>& context, Var<S> q, Var<S> k, Var<S> v) const {
  if (KvCache<S>* cache = context.options.cache) {
    cache->store(layer_, k.heads(), v.heads());
    const Index time = cache->length() + k.extent(1);
    k = context.tape.borrow(cache->keys(layer_, time));
    v = context.tape.borrow(cache->values(layer_, time));
  }
  if (kind_ == AttentionKind::explicit_form) return attend_explicitly(context, q, k, v);
  AttentionOptions options;
  options.dropout = context.dropout_mask(dropout_site(layer_, DropoutPlace::attention), heads_ * q.extent(1));
  if (const Index tile = context.options.attention_tile; tile > 0) options.query_tile = options.key_tile = tile;
  return causal_attention(std::move(q), std::move(k), std::move(v), options);
}

// The same for (B, H_kv, G, T, D): the key head is broadcast to the queries of its group.
template <class S>
Var<S> CausalSelfAttention::attend_explicitly(const ForwardContext<S>& context, const Var<S>& q, const Var<S>& k,
                                              const Var<S>& v) const {
  const Index group = heads_ / kv_heads_;
  const auto grouped = [](const Var<S>& x, Index kv_heads, Index queries_each) {
    return x.split_axis(2, kv_heads, queries_each).transpose(1, 2).transpose(2, 3);
  };
  AttentionOptions options;
  options.dropout = context.dropout_mask(dropout_site(layer_, DropoutPlace::attention), heads_ * q.extent(1));
  const Var<S> y = scaled_dot_product_attention(grouped(q, kv_heads_, group), grouped(k, kv_heads_, 1),
                                                grouped(v, kv_heads_, 1), options);
  const Var<S> back = contiguous(y.transpose(2, 3).transpose(1, 2));  // (B, T, H_kv, G, D)
  return back.reshape({q.extent(0), q.extent(1), heads_, v.extent(-1)});
}

#define HANDGRAD_INSTANTIATE(S)                                                                                 \
  template CausalSelfAttention::CausalSelfAttention(ParameterStore<S>&, const std::string&, const ModelConfig&, \
                                                    Index);                                                     \
  template Var<S> CausalSelfAttention::forward(const ForwardContext<S>&, Var<S>, const RopeTable<S>*) const;
HANDGRAD_FOR_ALL_SCALARS(HANDGRAD_INSTANTIATE)
#undef HANDGRAD_INSTANTIATE

}  // namespace handgrad
