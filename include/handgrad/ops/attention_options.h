#pragma once

#include "handgrad/ops/dropout_mask.h"
#include "handgrad/ops/mask.h"

namespace handgrad {

/// What both forms of attention take. A key is visible if the mask and the causal rule both say so.
struct AttentionOptions {
  bool causal = true;   ///< Key j is visible to query i iff j <= i + (K - Q).
  MaskRef mask;         ///< True: may attend. Broadcastable to (..., Q, K); empty: everything may.
  double scale = 0.0;   ///< Scores are scale * q.k; 0: 1 / sqrt(D).
  DropoutMask dropout;  ///< Of probabilities; rows are counted over all leading axes and queries.
  Index query_tile = 128;
  Index key_tile = 128;
};

}  // namespace handgrad
