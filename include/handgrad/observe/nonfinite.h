#pragma once

#include <memory>
#include <string>
#include <vector>

#include "handgrad/autograd/graph.h"
#include "handgrad/core/tensor.h"

namespace handgrad {

/// A tensor that took part where a number first was not finite.
struct WitnessTensor {
  std::string name;  ///< "input 0", "gradient"
  Tensor<float> values;
  double least = 0.0, largest = 0.0;  ///< Over its finite elements.
  Index not_finite = 0;
};

/// The first operation whose output, or a gradient that it gave, was not finite while what it read was.
struct NonFiniteOrigin {
  std::string operation;  ///< "rms_norm"
  std::string scope;      ///< "blocks/3/attention"
  bool backward = false;
  int input = 0;      ///< backward: whose gradient.
  Index element = 0;  ///< Of the output, or of that gradient, row-major.
  double value = 0.0;
  std::vector<WitnessTensor> witnesses;

  /// "blocks/3/attention/rms_norm, forward, element 17 is nan; input 0 (2, 8) in [-1.5, 3e+38]"
  std::string to_string() const;
};

/// Watches a tape until the first non-finite number appears, and keeps what was known there. Slow: every element of
/// every operation is looked at. Masked scores that an operation sets to -infinity on purpose are not held against it.
class NonFiniteTracer final : public GraphObserver<float> {
 public:
  void after_forward(Graph<float>& graph, int id) override;
  void after_backward(Graph<float>& graph, int id) override;
  /// Null as long as every number was finite.
  std::shared_ptr<const NonFiniteOrigin> origin() const { return origin_; }

 private:
  void record(Graph<float>& graph, int id, bool backward, int input, Index element, double value);

  std::shared_ptr<const NonFiniteOrigin> origin_;
};

/// Index of the first element that is not finite; -1 if all are.
Index first_not_finite(View<const float> x);

}  // namespace handgrad
