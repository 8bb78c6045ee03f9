#pragma once

#include "handgrad/ops/dropout_mask.h"
#include "handgrad/ops/mask.h"

namespace handgrad {

/// Options of both forms of attention. A key is visible if the mask and the causal rule both allow it.
struct AttentionOptions {
  bool causal = true;   ///< Key j is visible to query i iff j <= i + (K - Q).
  MaskRef mask;         ///< True: visible. Broadcastable to (..., Q, K); empty: all keys are.
  double scale = 0.0;   ///< Scores are scale * q.k; 0: 1 / sqrt(D).
  DropoutMask dropout;  ///< Of the probabilities; rows are counted over all leading axes and queries.
  Index query_tile = 128;
  Index key_tile = 128;
};

}  // namespace handgrad
