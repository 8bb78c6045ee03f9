#pragma once

#include "handgrad/autograd/tape.h"
#include "handgrad/ops/dropout_mask.h"
#include "handgrad/ops/positions.h"

namespace handgrad {

template <class S>
class KvCache;

/// The options of a forward pass. The default is evaluation.
template <class S>
struct ForwardOptions {
  bool training = false;           ///< Apply the dropout of the config.
  std::uint64_t seed = 0;          ///< The seed of dropout.
  std::uint64_t first_sample = 0;  ///< Number of the first sequence of the batch, counted over the whole training.
  KvCache<S>* cache = nullptr;     ///< Keys and values of earlier tokens: one sequence, recording off.
  Index attention_tile = 0;        ///< Queries and keys per tile of tiled attention; 0: chosen for speed.
};

/// The data that all layers of one forward pass use.
template <class S>
struct ForwardContext {
  Tape<S>& tape;
  const ParameterStore<S>& store;
  PositionsRef positions = {};
  double dropout = 0.0;  ///< Probability; 0 unless training.
  ForwardOptions<S> options = {};

  /// The mask of one dropout site of the model. Each sequence has `rows_per_sample` rows.
  DropoutMask dropout_mask(std::uint32_t site, Index rows_per_sample) const {
    return {dropout, options.seed, site, options.first_sample * static_cast<std::uint64_t>(rows_per_sample)};
  }
};

}  // namespace handgrad
