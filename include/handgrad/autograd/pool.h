#pragma once

#include <vector>

#include "handgrad/core/buffer.h"

namespace handgrad {

/// Memory of a tape: blocks that are handed out, given back and handed out again, so that a step after the first
/// allocates nothing. A request takes the smallest free block that is large enough and not more than a quarter larger.
template <class S>
class Pool {
 public:
  struct Block {
    S* data = nullptr;
    Index capacity = 0;
  };

  /// Uninitialised memory for `size` elements. Throws ResourceError.
  Block acquire(Index size);
  /// Takes back what acquire() gave. Throws Error for an empty block.
  void release(Block block);

  /// With poison, acquire() fills what it gives with NaN, and release() what it takes back.
  void set_poison(bool poison) { poison_ = poison; }

  /// Bytes owned, in use or free.
  Index bytes() const { return bytes_; }
  Index blocks_in_use() const { return in_use_; }

 private:
  std::vector<Buffer<S>> owned_;
  std::vector<Block> free_;  // by capacity, smallest first
  bool poison_ = false;
  Index bytes_ = 0;
  Index in_use_ = 0;
};

}  // namespace handgrad
