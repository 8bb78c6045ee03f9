#pragma once

#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "handgrad/autograd/graph.h"
#include "handgrad/autograd/parameter_store.h"
#include "handgrad/core/buffer.h"

namespace handgrad {

/// The health of one block, over all sequences of an update.
struct BlockHealth {
  /// The largest score scale * q.k that a query sees, over all heads.
  double attention_logit_max = 0.0;
  /// Mean over heads and queries of -sum p ln p, in nats, before dropout. It is 0 if every query attends to one key,
  /// and the mean of ln 1 .. ln T if every query attends equally to all visible keys.
  double attention_entropy = 0.0;
  /// Share of feed-forward units, the inputs of the down projection, that are within 1e-6 of zero at every token.
  double dead_units = 0.0;
};

/// The health of one part of a model in one update. A part is a block, or a tensor outside the blocks.
struct PartHealth {
  std::string name;           ///< The common start of its parameter names: "embedding", "blocks/0", "final_norm".
  double grad_norm = 0.0;     ///< L2 norm of its gradient, before clipping.
  double update_ratio = 0.0;  ///< ||new - old|| / ||old|| of its weights; 0 if they are equal.
  std::optional<BlockHealth> block;
};

struct HealthReport {
  std::vector<PartHealth> parts;  ///< In the order of the parameters.

  /// Every figure with its name, in a fixed order: "blocks/0/grad_norm", "blocks/0/update_ratio" ...
  std::vector<std::pair<std::string, double>> figures() const;
};

/// Statistics of visible attention scores and of the softmax over them.
struct ScoreStatistics {
  double largest = -std::numeric_limits<double>::infinity();
  double entropy = 0.0;  ///< Sum over rows.
  Index rows = 0;
};

/// Measures one update of a CausalLm. It observes the recording tape during the forward and backward passes, and
/// changes nothing. Sums are in double, in an order that does not depend on threads or on the split into micro-batches.
/// A NaN propagates to its figure.
///
///   HealthMonitor<float> monitor(store);
///   { Tape<float>::Watch watch(tape, monitor);  ...forward, backward... }
///   optimizer.step(store, lr, scale);
///   monitor.report()
template <class S>
class HealthMonitor final : public GraphObserver<S> {
 public:
  /// Copies the weights, for the update ratio. The store is not owned. Throws ResourceError.
  explicit HealthMonitor(const ParameterStore<S>& store);
  void after_forward(Graph<S>& graph, int id) override;
  /// The health as of the call: from the current gradients and weights, and all observed operations.
  HealthReport report() const;

 private:
  struct Part {
    std::string name;
    const S* down = nullptr;  // weights of the down projection; null for other parts
    ScoreStatistics scores;
    std::vector<unsigned char> alive;  // per feed-forward unit: was one of its values not zero?
  };
  // Parameters are summed in tiles; a tile belongs to one parameter.
  struct Tile {
    Index begin, end;
    std::size_t part;
  };

  Part* part_of(std::string_view scope, std::string_view layer);
  void measure_units(Part& part, View<const S> units);
  template <class F>
  std::vector<double> norms(F element) const;

  const ParameterStore<S>& store_;
  Buffer<S> before_;
  std::vector<Part> parts_;
  std::vector<Tile> tiles_;
};

}  // namespace handgrad
