#pragma once

#include <memory>
#include <type_traits>

#include "handgrad/core/types.h"

namespace handgrad {

namespace detail {
using TileBody = void (*)(void* context, Index tile);
void run_tiles(Index tiles, TileBody body, void* context);
[[noreturn]] void refuse_tile(Index tile);
}  // namespace detail

/// Calls body(0) .. body(tiles - 1), each once, on the threads of the caller's team. Which thread takes a tile, and
/// when, is open: a tile must write nothing that another one touches, and results may depend on the tile alone.
/// Inside, every thread rounds to nearest and flushes denormals to zero; its own setting is restored at the end. While
/// a thread multiplies matrices, asynchronous signals are blocked on it; its mask is restored at the end. The first
/// exception of a tile is thrown again here. Inside a tile, and in a forked child of a process with several threads, it
/// runs serially.
template <class F>
void parallel_tiles(Index tiles, F&& body) {
  using Body = std::remove_reference_t<F>;
  detail::run_tiles(
      tiles, [](void* context, Index tile) { (*static_cast<Body*>(context))(tile); },
      const_cast<void*>(static_cast<const void*>(std::addressof(body))));
}

/// Tiles of `tile` elements over [0, size), the last one shorter: body(begin, end). Throws RangeError for a tile below 1.
template <class F>
void parallel_ranges(Index size, Index tile, F&& body) {
  if (tile < 1) detail::refuse_tile(tile);
  parallel_tiles((size + tile - 1) / tile, [&](Index i) {
    const Index begin = i * tile;
    body(begin, begin + tile < size ? begin + tile : size);
  });
}

/// Elements in a tile of an elementwise pass: large enough to hide the cost of a team, small enough to share.
inline constexpr Index elementwise_tile = 16384;

/// How many threads the calling thread's tiles run on.
int thread_count();
/// Cores that this process may use.
int available_cores();
/// Lets the calling thread run on the cores of all OpenMP places. With OMP_PROC_BIND the first thread is bound to one
/// place when the program is loaded, and a program started in its stead would see that place only.
void release_places();

/// Sets the calling thread's number of threads for as long as it lives. Results do not depend on it.
class ThreadScope {
 public:
  explicit ThreadScope(int threads);
  ~ThreadScope();
  ThreadScope(const ThreadScope&) = delete;
  ThreadScope& operator=(const ThreadScope&) = delete;

 private:
  int before_;
};

}  // namespace handgrad
