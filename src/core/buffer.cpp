#include "handgrad/core/buffer.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <cstdlib>

#include "handgrad/core/errors.h"

namespace handgrad::memory {
namespace {

constexpr std::size_t cache_line = 64;
constexpr std::size_t huge_page = std::size_t{2} << 20;

thread_local Index allocations = 0;

}  // namespace

void* allocate_aligned(Index count, std::size_t element_bytes) {
  std::size_t bytes = 0;
  if (count < 0 || __builtin_mul_overflow(count, element_bytes, &bytes) || bytes > SIZE_MAX - huge_page) {
    throw ResourceError(
        fmt::format("memory: {} elements of {} bytes are more than can be addressed", count, element_bytes), SIZE_MAX);
  }
  const std::size_t alignment = bytes >= 2 * huge_page ? huge_page : cache_line;
  const std::size_t rounded = (bytes + alignment - 1) / alignment * alignment;
  void* memory = std::aligned_alloc(alignment, rounded);
  if (!memory) {
    throw ResourceError(fmt::format("memory: {:.1f} MB could not be allocated", static_cast<double>(bytes) / 1e6),
                        bytes);
  }
  if (alignment == huge_page) madvise(memory, rounded, MADV_HUGEPAGE);  // a failure costs only speed
  ++allocations;
  return memory;
}

void free_aligned(void* memory) noexcept { std::free(memory); }

Index allocations_of_this_thread() { return allocations; }

}  // namespace handgrad::memory
