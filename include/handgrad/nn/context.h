#pragma once

#include "handgrad/autograd/tape.h"
#include "handgrad/ops/dropout_mask.h"
#include "handgrad/ops/positions.h"

namespace handgrad {

template <class S>
class KvCache;

/// What every layer of one forward pass shares.
template <class S>
struct Context {
  Tape<S>& tape;
  const ParameterStore<S>& store;
  PositionsRef positions = {};
  double dropout = 0.0;  ///< 0 outside training.
  std::uint64_t seed = 0;
  std::uint64_t first_sample = 0;  ///< Number of the batch's first sequence, over the whole training.
  KvCache<S>* cache = nullptr;     ///< Keys and values of earlier tokens, when generating.
  Index attention_tile = 0;        ///< Queries and keys in a tile of tiled attention; 0: as many as are fast.

  /// The mask of one dropout of the model, for `rows_per_sample` rows a sequence.
  DropoutMask dropout_mask(std::uint32_t site, Index rows_per_sample) const {
    return {dropout, seed, site, first_sample * static_cast<std::uint64_t>(rows_per_sample)};
  }
};

}  // namespace handgrad
