#pragma once

#include <string>

#include "handgrad/nn/context.h"

namespace handgrad {

/// y = x W^T + b with a weight (out, in) and, optionally, a bias (out).
class Linear {
 public:
  /// Declares `name`/weight, in the given role, and `name`/bias if there is one.
  template <class S>
  Linear(ParameterStore<S>& store, const std::string& name, Index in, Index out, bool bias,
         ParameterRole role = ParameterRole::matrix);

  template <class S>
  Var<S> forward(const ForwardContext<S>& context, Var<S> x) const;

 private:
  ParameterId weight_;
  ParameterId bias_ = -1;
};

}  // namespace handgrad
