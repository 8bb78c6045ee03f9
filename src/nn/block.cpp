#include "handgrad/nn/block.h"

#include "core/instantiate.h"
#include "handgrad/ops/add.h"
#include "nn/check_config.h"

namespace handgrad {

template <class S>
Block::Block(ParameterStore<S>& store, const std::string& name, const ModelConfig& config, Index layer)
    : name_(name),
      attention_norm_(store, name + "/attention_norm", resolved(config).d_model, config.norm, config.bias,
                      config.norm_eps),
      attention_(store, name + "/attention", config, layer),
      feed_forward_norm_(store, name + "/feed_forward_norm", config.d_model, config.norm, config.bias, config.norm_eps),
      feed_forward_(store, name + "/feed_forward", config, layer) {}

template <class S>
Var<S> Block::forward(const ForwardContext<S>& context, Var<S> x, const RopeTable<S>* table) const {
  const typename Tape<S>::Scope scope(context.tape, name_);
  const auto normed = [&](const char* name, const Norm& norm) {
    const typename Tape<S>::Scope norm_scope(context.tape, name);
    return norm.forward(context, x);
  };
  Var<S> attended = attention_.forward(context, normed("attention_norm", attention_norm_), table);
  x = add(std::move(x), std::move(attended));
  Var<S> fed = feed_forward_.forward(context, normed("feed_forward_norm", feed_forward_norm_));
  return add(std::move(x), std::move(fed));
}

#define HANDGRAD_INSTANTIATE(S)                                                             \
  template Block::Block(ParameterStore<S>&, const std::string&, const ModelConfig&, Index); \
  template Var<S> Block::forward(const ForwardContext<S>&, Var<S>, const RopeTable<S>*) const;
HANDGRAD_FOR_ALL_SCALARS(HANDGRAD_INSTANTIATE)
#undef HANDGRAD_INSTANTIATE

}  // namespace handgrad
