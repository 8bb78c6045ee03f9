#pragma once

#include "handgrad/autograd/tape.h"
#include "handgrad/ops/dropout_mask.h"
#include "handgrad/ops/positions.h"

namespace handgrad {

template <class S>
class KvCache;

/// How a forward pass is done. The default is evaluation.
template <class S>
struct ForwardOptions {
  bool training = false;           ///< With dropout as configured.
  std::uint64_t seed = 0;          ///< Of dropout.
  std::uint64_t first_sample = 0;  ///< Number of the batch's first sequence, counted over the whole training.
  KvCache<S>* cache = nullptr;     ///< Keys and values of earlier tokens: one sequence, recording off.
  Index attention_tile = 0;        ///< Queries and keys per tile of tiled attention; 0: chosen for speed.
};

/// One forward pass, as its layers see it.
template <class S>
struct Context {
  Tape<S>& tape;
  const ParameterStore<S>& store;
  PositionsRef positions = {};
  double dropout = 0.0;  ///< Probability; 0 outside training.
  ForwardOptions<S> options = {};

  /// The mask of one dropout of the model. Each sequence has `rows_per_sample` rows.
  DropoutMask dropout_mask(std::uint32_t site, Index rows_per_sample) const {
    return {dropout, options.seed, site, options.first_sample * static_cast<std::uint64_t>(rows_per_sample)};
  }
};

}  // namespace handgrad
