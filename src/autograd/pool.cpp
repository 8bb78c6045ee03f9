#include "handgrad/autograd/pool.h"

#include <algorithm>
#include <complex>
#include <limits>

#include "handgrad/core/errors.h"

namespace handgrad {

template <class S>
typename Pool<S>::Block Pool<S>::acquire(Index size) {
  const auto fits = std::lower_bound(free_.begin(), free_.end(), size,
                                     [](const Block& block, Index wanted) { return block.capacity < wanted; });
  Block block;
  if (fits != free_.end() && fits->capacity <= size + size / 4 + 64) {
    // Among blocks of equal size the last released one: its memory is in the cache, and erasing it moves no other
    // block.
    const auto last = std::upper_bound(fits, free_.end(), fits->capacity,
                                       [](Index capacity, const Block& other) { return capacity < other.capacity; }) -
                      1;
    block = *last;
    free_.erase(last);
  } else {
    owned_.emplace_back(size);
    block = {owned_.back().data(), size};
    bytes_ += size * static_cast<Index>(sizeof(S));
    free_.reserve(owned_.size());  // so that release() never allocates
  }
  ++in_use_;
  if (poison_) std::fill(block.data, block.data + block.capacity, S(std::numeric_limits<float>::quiet_NaN()));
  return block;
}

template <class S>
void Pool<S>::release(Block block) {
  if (!block.data) throw Error("pool: a block of acquire() is needed, got an empty one");
  if (poison_) std::fill(block.data, block.data + block.capacity, S(std::numeric_limits<float>::quiet_NaN()));
  const auto place = std::upper_bound(free_.begin(), free_.end(), block.capacity,
                                      [](Index capacity, const Block& other) { return capacity < other.capacity; });
  free_.insert(place, block);
  --in_use_;
}

template class Pool<float>;
template class Pool<double>;
template class Pool<std::complex<double>>;

}  // namespace handgrad
