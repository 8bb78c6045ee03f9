#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "handgrad/autograd/graph.h"
#include "handgrad/autograd/parameter_store.h"

namespace handgrad::verify {

/// Proves that operations only read their operands. Each value is hashed when it is made and again at every use; the
/// parameters of a store are compared with a copy. Observe one forward and one backward pass with it.
/// Hashing takes about as long as the operations.
template <class S>
class OperandWatch final : public GraphObserver<S> {
 public:
  /// Copies the parameters. The store is not owned.
  explicit OperandWatch(const ParameterStore<S>& store);

  void after_forward(Graph<S>& graph, int id) override;
  void after_backward(Graph<S>& graph, int id) override;

  /// One sentence for each value that was written to: "blocks/0/attention_norm/rms_norm, backward: it changed its
  /// operand 0", "head/weight: the parameter's values were changed". Empty if all kept their bits.
  std::vector<std::string> violations() const;

 private:
  void compare_values(Graph<S>& graph, int id, const char* pass);
  bool changed(Graph<S>& graph, int id);

  const ParameterStore<S>& store_;
  std::vector<S> values_;
  std::map<int, std::uint64_t> hashes_;  // by node
  std::vector<std::string> found_;
};

}  // namespace handgrad::verify
