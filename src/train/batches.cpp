#include "handgrad/train/batches.h"

namespace handgrad {

TrainingBatches::TrainingBatches(const Config& config, std::span<const TokenId> tokens)
    : sequences_(config.train.batch_size),
      accumulation_(config.train.accumulation),
      windows_(tokens, config.model.context, config.data.order, config.train.seed),
      inputs_(sequences_ * config.model.context),
      targets_(inputs_.size()) {}

MicroBatch TrainingBatches::micro_batch(Index step, Index i) {
  const Index first = first_sample(step, i);
  windows_.fill(first, inputs_, targets_);
  return {inputs_, targets_, static_cast<std::uint64_t>(first)};
}

std::vector<Index> TrainingBatches::starts(Index step, Index i) const {
  std::vector<Index> starts;
  for (Index sequence = 0; sequence < sequences_; ++sequence) {
    starts.push_back(windows_.start(first_sample(step, i) + sequence));
  }
  return starts;
}

}  // namespace handgrad
