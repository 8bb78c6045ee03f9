#include "handgrad/nn/norm.h"

#include "core/instantiate.h"
#include "handgrad/ops/layer_norm.h"
#include "handgrad/ops/rms_norm.h"

namespace handgrad {

template <class S>
Norm::Norm(ParameterStore<S>& store, const std::string& name, Index width, NormKind kind, bool bias, double eps)
    : kind_(kind), eps_(eps), weight_(store.add(name + "/weight", {width}, ParameterRole::gain)) {
  if (bias && kind == NormKind::layer) bias_ = store.add(name + "/bias", {width}, ParameterRole::bias);
}

template <class S>
Var<S> Norm::forward(const ForwardContext<S>& context, Var<S> x) const {
  const Var<S> weight = context.tape.parameter(context.store, weight_);
  if (kind_ == NormKind::rms) return rms_norm(std::move(x), weight, eps_);
  return layer_norm(std::move(x), weight, bias_ < 0 ? Var<S>() : context.tape.parameter(context.store, bias_), eps_);
}

#define HANDGRAD_INSTANTIATE(S)                                                               \
  template Norm::Norm(ParameterStore<S>&, const std::string&, Index, NormKind, bool, double); \
  template Var<S> Norm::forward(const ForwardContext<S>&, Var<S>) const;
HANDGRAD_FOR_ALL_SCALARS(HANDGRAD_INSTANTIATE)
#undef HANDGRAD_INSTANTIATE

}  // namespace handgrad
