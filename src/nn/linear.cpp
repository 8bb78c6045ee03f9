#include "handgrad/nn/linear.h"

#include "core/instantiate.h"
#include "handgrad/ops/linear.h"

namespace handgrad {

template <class S>
Linear::Linear(ParameterStore<S>& store, const std::string& name, Index in, Index out, bool bias, ParameterRole role)
    : weight_(store.add(name + "/weight", {out, in}, role)) {
  if (bias) bias_ = store.add(name + "/bias", {out}, ParameterRole::bias);
}

template <class S>
Var<S> Linear::forward(const ForwardContext<S>& context, Var<S> x) const {
  return linear(std::move(x), context.tape.parameter(context.store, weight_),
                bias_ < 0 ? Var<S>() : context.tape.parameter(context.store, bias_));
}

#define HANDGRAD_INSTANTIATE(S)                                                                       \
  template Linear::Linear(ParameterStore<S>&, const std::string&, Index, Index, bool, ParameterRole); \
  template Var<S> Linear::forward(const ForwardContext<S>&, Var<S>) const;
HANDGRAD_FOR_ALL_SCALARS(HANDGRAD_INSTANTIATE)
#undef HANDGRAD_INSTANTIATE

}  // namespace handgrad
