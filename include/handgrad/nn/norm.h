#pragma once

#include <string>

#include "handgrad/config/config.h"
#include "handgrad/nn/context.h"

namespace handgrad {

/// RMS or layer normalisation of the last axis, with a learned weight (initially 1) and, for layer normalisation with
/// biases, a learned bias.
class Norm {
 public:
  /// Declares `name`/weight, and `name`/bias if there is one.
  template <class S>
  Norm(ParameterStore<S>& store, const std::string& name, Index width, NormKind kind, bool bias, double eps);

  template <class S>
  Var<S> forward(const ForwardContext<S>& context, Var<S> x) const;

 private:
  NormKind kind_;
  double eps_;
  ParameterId weight_;
  ParameterId bias_ = -1;
};

}  // namespace handgrad
