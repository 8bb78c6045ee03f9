#pragma once

#include "handgrad/core/types.h"

namespace handgrad {

/// Positions of tokens, counted from 0: (T), shared by all sequences of a batch, or (B, T). Non-owning.
struct PositionsRef {
  const Index* data = nullptr;
  Index batch = 1;  ///< 1: shared by all sequences.
  Index time = 0;

  Index at(Index b, Index t) const { return data[(batch == 1 ? 0 : b) * time + t]; }
  explicit operator bool() const { return data != nullptr; }
};

}  // namespace handgrad
