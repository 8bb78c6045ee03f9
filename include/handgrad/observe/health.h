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

/// What went on inside a block, over all sequences of an update.
struct BlockHealth {
  /// The largest score q.k / sqrt(D) that a query sees, over all heads.
  double attention_logit_max = 0.0;
  /// Mean over heads and queries of -sum p ln p, in nats, before dropout. 0: every query reads one key only; the mean
  /// of ln 1 .. ln T: every query reads all that it sees alike.
  double attention_entropy = 0.0;
  /// Share of feed-forward units, as the down projection reads them, that are within 1e-6 of zero at every token.
  double dead_units = 0.0;
};

/// How one part of a model fared in one update: a block, or what lies outside of the blocks.
struct PartHealth {
  std::string name;           ///< What the paths of its parameters begin with: "embedding", "blocks/0", "final_norm".
  double grad_norm = 0.0;     ///< L2 norm of its gradient, before clipping.
  double update_ratio = 0.0;  ///< ||new - old|| / ||old|| of its weights; 0 if nothing moved.
  std::optional<BlockHealth> block;
};

struct HealthReport {
  std::vector<PartHealth> parts;  ///< In the order of the parameters.

  /// Every figure under its name, in a fixed order: "blocks/0/grad_norm", "blocks/0/update_ratio" ...
  std::vector<std::pair<std::string, double>> figures() const;
};

/// Measures one update of a CausalLm: watch the tape (which records) while the gradients are made, micro-batch by
/// micro-batch, apply the update, ask for the report. Only reads: what is watched keeps its bits. Figures are summed in
/// double, in one order, whatever the number of threads and the split into micro-batches. A NaN shows in its figure.
///
///   HealthMonitor monitor(store);
///   { Tape<float>::Watch watch(tape, monitor);  ...forward, backward... }
///   optimizer.step(store, lr, scale);
///   monitor.report()
class HealthMonitor final : public GraphObserver<float> {
 public:
  /// Copies the weights, to compare with them later. The store is borrowed. Throws ResourceError.
  explicit HealthMonitor(const ParameterStore<float>& store);
  void after_forward(Graph<float>& graph, int id) override;
  /// Of the store's gradients as they stand, its weights against what they were, and all that was seen since.
  HealthReport report() const;

  /// Visible scores of attention, and the softmax over them.
  struct Scores {
    double largest = -std::numeric_limits<double>::infinity();
    double entropy = 0.0;  ///< Sum over rows.
    Index rows = 0;
  };

 private:
  struct Part {
    std::string name;
    const float* down = nullptr;  // weights of the down projection; null outside of the blocks
    Scores scores;
    std::vector<unsigned char> alive;  // feed-forward units that have shown a value
  };
  // Parameters are summed over in tiles that never cross from one to the next.
  struct Tile {
    Index begin, end;
    std::size_t part;
  };

  Part* part_of(std::string_view scope, std::string_view layer);
  void look_at_units(Part& part, View<const float> units);
  template <class F>
  std::vector<double> norms(F element) const;

  const ParameterStore<float>& store_;
  Buffer<float> before_;
  std::vector<Part> parts_;
  std::vector<Tile> tiles_;
};

}  // namespace handgrad
