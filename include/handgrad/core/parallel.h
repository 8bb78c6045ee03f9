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

/// Calls body(0) .. body(tiles - 1), each once, on several threads. The assignment of tiles to threads is not
/// specified: a tile must not write memory that another tile accesses, and its result may depend on the tile only.
///
/// During the call every thread rounds to nearest and flushes denormals to zero, and asynchronous signals are blocked
/// on a thread while it multiplies matrices. Rounding mode and signal mask are restored at the end. Rethrows the first
/// exception of a tile. Runs serially inside a tile, and in a forked child of a process with several threads.
template <class F>
void parallel_tiles(Index tiles, F&& body) {
  using Body = std::remove_reference_t<F>;
  detail::run_tiles(
      tiles, [](void* context, Index tile) { (*static_cast<Body*>(context))(tile); },
      const_cast<void*>(static_cast<const void*>(std::addressof(body))));
}

/// Calls body(begin, end) for tiles of `tile` elements that cover [0, size); the last one may be shorter. Throws
/// RangeError for a tile below 1.
template <class F>
void parallel_ranges(Index size, Index tile, F&& body) {
  if (tile < 1) detail::refuse_tile(tile);
  parallel_tiles((size + tile - 1) / tile, [&](Index i) {
    const Index begin = i * tile;
    body(begin, begin + tile < size ? begin + tile : size);
  });
}

/// Elements per tile of an elementwise pass: large enough to amortise the start of a parallel region, small enough to
/// balance threads.
inline constexpr Index elementwise_tile = 16384;

/// The number of threads for tiles that the calling thread starts.
int thread_count();
/// Cores that this process may use.
int available_cores();
/// Lets the calling thread run on the cores of all OpenMP places. With OMP_PROC_BIND the first thread is bound to one
/// place when the program is loaded; after exec() the new program would be limited to that place.
void release_places();

/// Sets the number of threads of the calling thread, until the end of the scope. Results do not depend on it.
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
