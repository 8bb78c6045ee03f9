#pragma once

#include <cstddef>
#include <memory>
#include <utility>

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

/// An uninitialised, aligned array that it owns. Empty when it is made without a size or has been moved from. Elements
/// are not checked. Throws ResourceError for a negative size.
template <class T>
class Buffer {
 public:
  Buffer() = default;
  explicit Buffer(Index size)
      : memory_(static_cast<T*>(size != 0 ? allocate_aligned(size, sizeof(T)) : nullptr)), size_(size) {}
  Buffer(Buffer&& other) noexcept : memory_(std::move(other.memory_)), size_(std::exchange(other.size_, 0)) {}
  Buffer& operator=(Buffer&& other) noexcept {
    memory_ = std::move(other.memory_);
    size_ = std::exchange(other.size_, 0);
    return *this;
  }

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
