#pragma once

#include <cstddef>
#include <memory>
#include <utility>

#include "handgrad/core/types.h"

namespace handgrad::memory {

/// Memory for `count` elements of `element_bytes` each, aligned to 64 bytes; large blocks request huge pages. Throws
/// ResourceError, with the number of bytes, if it cannot be allocated or the product overflows.
void* allocate_aligned(Index count, std::size_t element_bytes);
void free_aligned(void* memory) noexcept;

/// Number of calls of allocate_aligned in this thread so far. Tests use it to prove that a step allocates nothing.
Index allocations_of_this_thread();

struct FreeAligned {
  void operator()(void* memory) const noexcept { free_aligned(memory); }
};

}  // namespace handgrad::memory

namespace handgrad {

/// An owning, aligned, uninitialised array. It is empty if it was constructed without a size or moved from. Access to
/// elements is not checked. Throws ResourceError for a negative size.
template <class T>
class Buffer {
 public:
  Buffer() = default;
  explicit Buffer(Index size)
      : memory_(static_cast<T*>(size != 0 ? memory::allocate_aligned(size, sizeof(T)) : nullptr)), size_(size) {}
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
  std::unique_ptr<T[], memory::FreeAligned> memory_;
  Index size_ = 0;
};

}  // namespace handgrad
