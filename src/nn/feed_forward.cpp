#include "handgrad/nn/feed_forward.h"

#include "core/instantiate.h"
#include "handgrad/core/errors.h"
#include "handgrad/nn/dropout_sites.h"
#include "handgrad/ops/dropout.h"
#include "handgrad/ops/gelu.h"
#include "handgrad/ops/gelu_tanh.h"
#include "handgrad/ops/relu_squared.h"
#include "handgrad/ops/swiglu.h"
#include "nn/check_config.h"

namespace handgrad {

template <class S>
FeedForward::FeedForward(ParameterStore<S>& store, const std::string& name, const ModelConfig& config, Index layer)
    : layer_(layer),
      kind_(resolved(config).feed_forward),
      gate_(config.feed_forward == FeedForwardKind::swiglu
                ? std::optional<Linear>(std::in_place, store, name + "/gate", config.d_model, config.d_ff, config.bias)
                : std::nullopt),
      up_(store, name + "/up", config.d_model, config.d_ff, config.bias),
      down_(store, name + "/down", config.d_ff, config.d_model, config.bias, ParameterRole::residual_matrix) {}

template <class S>
Var<S> FeedForward::forward(const ForwardContext<S>& context, Var<S> x) const {
  const typename Tape<S>::Scope scope(context.tape, "feed_forward");
  if (x.shape().rank() != 3) {
    throw ShapeError(fmt::format("feed-forward layer: x (B, T, C) is needed, got {}", x.shape().to_string()));
  }
  const Index time = x.extent(1);
  Var<S> h;
  if (kind_ == FeedForwardKind::swiglu) {
    Var<S> gate = gate_->forward(context, x);
    h = swiglu(std::move(gate), up_.forward(context, std::move(x)));
  } else {
    h = up_.forward(context, std::move(x));
    if (kind_ == FeedForwardKind::gelu) h = gelu(std::move(h));
    if (kind_ == FeedForwardKind::gelu_tanh) h = gelu_tanh(std::move(h));
    if (kind_ == FeedForwardKind::relu_squared) h = relu_squared(std::move(h));
  }
  return dropout(down_.forward(context, std::move(h)),
                 context.dropout_mask(dropout_site(layer_, DropoutPlace::feed_forward_output), time));
}

#define HANDGRAD_INSTANTIATE(S)                                                                         \
  template FeedForward::FeedForward(ParameterStore<S>&, const std::string&, const ModelConfig&, Index); \
  template Var<S> FeedForward::forward(const ForwardContext<S>&, Var<S>) const;
HANDGRAD_FOR_ALL_SCALARS(HANDGRAD_INSTANTIATE)
#undef HANDGRAD_INSTANTIATE

}  // namespace handgrad
