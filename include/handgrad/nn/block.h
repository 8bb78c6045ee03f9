#pragma once

#include <string>

#include "handgrad/nn/causal_self_attention.h"
#include "handgrad/nn/feed_forward.h"

namespace handgrad {

/// A pre-norm transformer block: x = x + attention(norm(x)), then x = x + feed_forward(norm(x)).
class Block {
 public:
  /// Declares the parameters of its parts, below `name`. `config` is resolved.
  template <class S>
  Block(ParameterStore<S>& store, const std::string& name, const ModelConfig& config, Index layer);

  /// x and y: (B, T, C).
  template <class S>
  Var<S> forward(const ForwardContext<S>& context, Var<S> x, const RopeTable<S>* table) const;

 private:
  std::string name_;
  Norm attention_norm_;
  CausalSelfAttention attention_;
  Norm feed_forward_norm_;
  FeedForward feed_forward_;
};

}  // namespace handgrad
