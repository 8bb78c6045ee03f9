#pragma once

#include <optional>
#include <string>

#include "handgrad/nn/linear.h"
#include "handgrad/nn/norm.h"
#include "handgrad/ops/rope.h"

namespace handgrad {

/// Multi-head self-attention: one matrix projects to Q, K and V (rows: all Q heads, then K heads, then V heads);
/// QK-norm and RoPE are applied to each head of Q and K; then attention in the form of the config; one output
/// projection.
class CausalSelfAttention {
 public:
  /// Declares `name`/qkv, `name`/out and, with QK-norm, `name`/q_norm and `name`/k_norm. `config` is resolved.
  template <class S>
  CausalSelfAttention(ParameterStore<S>& store, const std::string& name, const ModelConfig& config, Index layer);

  /// x and y: (B, T, C). `table` is used if the positions of the config are RoPE.
  template <class S>
  Var<S> forward(const ForwardContext<S>& context, Var<S> x, const RopeTable<S>* table) const;

 private:
  template <class S>
  Var<S> attend(const ForwardContext<S>& context, Var<S> q, Var<S> k, Var<S> v) const;
  template <class S>
  Var<S> attend_explicitly(const ForwardContext<S>& context, const Var<S>& q, const Var<S>& k, const Var<S>& v) const;

  Index layer_, heads_, kv_heads_;
  bool rope_;
  AttentionKind kind_;
  Linear qkv_, out_;
  std::optional<Norm> q_norm_, k_norm_;
};

}  // namespace handgrad
