#pragma once

#include <optional>
#include <string>

#include "handgrad/config/config.h"
#include "handgrad/nn/linear.h"

namespace handgrad {

/// down(f(up(x))), or for SwiGLU down(silu(gate(x)) up(x)).
class FeedForward {
 public:
  /// Declares `name`/up, `name`/down and for SwiGLU `name`/gate. `config` is resolved.
  template <class S>
  FeedForward(ParameterStore<S>& store, const std::string& name, const ModelConfig& config, Index layer);

  template <class S>
  Var<S> forward(const ForwardContext<S>& context, Var<S> x) const;

 private:
  Index layer_;
  FeedForwardKind kind_;
  std::optional<Linear> gate_;
  Linear up_, down_;
};

}  // namespace handgrad
