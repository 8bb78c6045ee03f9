#pragma once

#include <memory>
#include <string>
#include <vector>

#include "handgrad/autograd/graph.h"
#include "handgrad/core/tensor.h"

namespace handgrad {

/// An operand of the operation that first produced a non-finite number.
template <class S>
struct WitnessTensor {
  std::string name;  ///< "input 0", "gradient of the output"
  Tensor<S> values;
  double least = 0.0, largest = 0.0;  ///< Over its finite elements.
  Index not_finite = 0;
};

/// The first operation with finite operands whose result, or a gradient that it produced, was not finite.
template <class S>
struct NonFiniteOrigin {
  std::string operation;  ///< "rms_norm"
  std::string scope;      ///< "blocks/3/attention"
  bool backward = false;
  int input = 0;      ///< In the backward pass: the input whose gradient it is.
  Index element = 0;  ///< Index in the result or in that gradient, row-major.
  double value = 0.0;
  std::vector<WitnessTensor<S>> witnesses;

  /// "blocks/3/attention/rms_norm, forward, element 17 is nan; input 0 (2, 8) in [-1.5, 3e+38]"
  std::string to_string() const;
};

/// Observes a tape until the first non-finite number, and records the operation and its operands. It reads every
/// element of every operation, which is slow. It accepts -infinity where an operation declares it (Output).
template <class S>
class NonFiniteTracer final : public GraphObserver<S> {
 public:
  void after_forward(Graph<S>& graph, int id) override;
  void after_backward(Graph<S>& graph, int id) override;
  /// Null if every number so far was finite.
  std::shared_ptr<const NonFiniteOrigin<S>> origin() const { return origin_; }

 private:
  void record(Graph<S>& graph, int id, bool backward, int input, Index element, S value);

  std::shared_ptr<const NonFiniteOrigin<S>> origin_;
};

/// Index of the first element that is not finite; -1 if all are.
template <class S>
Index first_not_finite(View<const S> x);

}  // namespace handgrad
