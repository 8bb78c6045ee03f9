#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "handgrad/autograd/parameter_store.h"

namespace handgrad::verify {

/// Proves that a backward pass adds to the gradients that a store holds.
///
///   ...a backward pass into gradients of 0...
///   AddedGradient<S> proof(store, seed);   // copies the gradients, then sets them to random numbers of the same size
///   ...the same pass again...
///   const auto rows = proof.compare();
///
/// The error of a tensor is max |gained - found| / its largest gradient: about 1 where a gradient is assigned.
template <class S>
class AddedGradient {
 public:
  /// The worst entry of one tensor.
  struct Row {
    std::string tensor;
    double error = 0.0;
    Index index = 0;
  };

  /// Throws Error if the store has no gradients.
  AddedGradient(ParameterStore<S>& store, std::uint64_t seed);
  /// One row per tensor, in the store's order.
  std::vector<Row> compare() const;
  /// One sentence for each tensor whose error is above `limit`, or NaN.
  std::vector<std::string> violations(double limit) const;

 private:
  ParameterStore<S>& store_;
  std::vector<S> found_, filled_;
  std::vector<double> scales_;
};

}  // namespace handgrad::verify
