#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <type_traits>
#include <vector>

namespace handgrad {

namespace detail {
[[noreturn]] void refuse_alignment();
}

/// Memory for small, trivially destructible objects. reset() frees all of them at once and keeps the memory.
class Arena {
 public:
  /// Throws RangeError for an alignment of 0.
  void* allocate(std::size_t bytes, std::size_t alignment) {
    if (alignment == 0) detail::refuse_alignment();
    used_ = (used_ + alignment - 1) / alignment * alignment;
    if (chunk_ == chunks_.size() || used_ + bytes > chunks_[chunk_].size) next_chunk(bytes);
    void* memory = chunks_[chunk_].memory.get() + used_;
    used_ += bytes;
    return memory;
  }

  template <class T>
  T* make(const T& value) {
    static_assert(std::is_trivially_destructible_v<T>);
    return new (allocate(sizeof(T), alignof(T))) T(value);
  }

  template <class T>
  std::span<T> copy(std::span<const T> values) {
    static_assert(std::is_trivially_copyable_v<T>);
    T* memory = static_cast<T*>(allocate(values.size_bytes() + 1, alignof(T)));
    std::uninitialized_copy(values.begin(), values.end(), memory);
    return {memory, values.size()};
  }

  void reset() { chunk_ = used_ = 0; }

 private:
  struct Chunk {
    std::unique_ptr<std::byte[]> memory;
    std::size_t size;
  };

  void next_chunk(std::size_t bytes) {
    if (chunk_ < chunks_.size()) ++chunk_;
    while (chunk_ < chunks_.size() && chunks_[chunk_].size < bytes) ++chunk_;
    if (chunk_ == chunks_.size()) {
      const std::size_t size = bytes > chunk_size ? bytes : chunk_size;
      chunks_.push_back({std::make_unique<std::byte[]>(size), size});
    }
    used_ = 0;
  }

  static constexpr std::size_t chunk_size = 65536;
  std::vector<Chunk> chunks_;
  std::size_t chunk_ = 0;
  std::size_t used_ = 0;
};

}  // namespace handgrad
