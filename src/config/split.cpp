#include "handgrad/config/split.h"

#include <fmt/format.h>

#include "handgrad/config/validate.h"
#include "handgrad/core/errors.h"
#include "handgrad/core/gemm.h"

namespace handgrad {

Index block_sequences(Index context) {
  if (context < 1) throw RangeError(fmt::format("block of sequences: the context must be 1 or more, got {}", context));
  return gemm::block_rows(context) / context;
}

std::string split_note(const Config& config) {
  validate(config);
  const Index block = block_sequences(config.model.context);
  const TrainConfig& train = config.train;
  if (train.accumulation == 1 || train.batch_size % block == 0) return "";
  return fmt::format(
      "train.batch_size {} is not a multiple of {}: with train.accumulation {} the bits of this run depend on the "
      "split "
      "of its batches. Gradients are summed in blocks of {} sequences (256 tokens / model.context {}, rounded up); a "
      "multiple of {} gives the same bits for every split",
      train.batch_size, block, train.accumulation, block, config.model.context, block);
}

}  // namespace handgrad
