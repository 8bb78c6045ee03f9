#pragma once

#include <cstddef>
#include <memory>

#include "handgrad/core/types.h"

namespace handgrad {

/// Memory aligned to 64 bytes; large blocks ask for huge pages. Throws ResourceError with the amount.
/// `count` elements of `element_bytes` each; the product is checked.
void* allocate_aligned(Index count, std::size_t element_bytes);
void free_aligned(void* memory) noexcept;

/// Number of blocks that allocate_aligned has handed out in this thread since it began: for tests of "no allocation".
Index allocations_of_this_thread();

struct FreeAligned {
  void operator()(void* memory) const noexcept { free_aligned(memory); }
};

/// An uninitialised, aligned array that it owns.
template <class T>
class Buffer {
 public:
  Buffer() = default;
  explicit Buffer(Index size)
      : memory_(static_cast<T*>(size > 0 ? allocate_aligned(size, sizeof(T)) : nullptr)), size_(size) {}

  T* data() { return memory_.get(); }
  const T* data() const { return memory_.get(); }
  Index size() const { return size_; }
  T& operator[](Index i) { return memory_.get()[i]; }
  const T& operator[](Index i) const { return memory_.get()[i]; }
  T* begin() { return data(); }
  T* end() { return data() + size_; }
  const T* begin() const { return data(); }
  const T* end() const { return data() + size_; }

 private:
  std::unique_ptr<T[], FreeAligned> memory_;
  Index size_ = 0;
};

}  // namespace handgrad
