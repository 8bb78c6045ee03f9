#pragma once

#include <span>
#include <vector>

#include "handgrad/config/config.h"
#include "handgrad/text/windows.h"
#include "handgrad/train/update.h"

namespace handgrad {

/// The micro-batches of a run: windows of its training tokens, as a function of the number of the update.
class TrainingBatches {
 public:
  /// The tokens are not owned. Throws DataError if there are fewer than context + 1.
  TrainingBatches(const Config& config, std::span<const TokenId> tokens);

  /// Micro-batch i of the update after `step` completed ones; valid until the next call.
  MicroBatch micro_batch(Index step, Index i);
  /// Index of the first token of each of its sequences.
  std::vector<Index> starts(Index step, Index i) const;

 private:
  Index first_sample(Index step, Index i) const { return (step * accumulation_ + i) * sequences_; }

  Index sequences_, accumulation_;
  TokenWindows windows_;
  std::vector<TokenId> inputs_, targets_;
};

}  // namespace handgrad
