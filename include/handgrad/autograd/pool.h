#pragma once

#include <vector>

#include "handgrad/core/buffer.h"

namespace handgrad {

/// The memory of a tape. Released blocks are reused, so that a step after the first allocates nothing. A request takes
/// the smallest free block that is large enough and at most a quarter larger.
template <class S>
class Pool {
 public:
  struct Block {
    S* data = nullptr;
    Index capacity = 0;
  };

  /// Uninitialised memory for `size` elements. Throws ResourceError.
  Block acquire(Index size);
  /// Releases a block of acquire(). Throws Error for an empty block.
  void release(Block block);

  /// With poison, acquire() and release() fill the block with NaN.
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
