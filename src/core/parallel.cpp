#include "handgrad/core/parallel.h"

#include <omp.h>

#include <algorithm>
#include <exception>
#if defined(__SSE__)
#include <xmmintrin.h>
#endif

namespace handgrad {
namespace {

// Flush-to-zero and denormals-are-zero for as long as it lives: a denormal costs up to a hundred times a normal number.
class FlushDenormals {
 public:
#if defined(__SSE__)
  FlushDenormals() : before_(_mm_getcsr()) { _mm_setcsr(before_ | 0x8040u); }
  ~FlushDenormals() { _mm_setcsr(before_); }

 private:
  unsigned before_;
#elif defined(__aarch64__)
  FlushDenormals() {
    asm volatile("mrs %0, fpcr" : "=r"(before_));
    asm volatile("msr fpcr, %0" ::"r"(before_ | (std::uint64_t{1} << 24)));
  }
  ~FlushDenormals() { asm volatile("msr fpcr, %0" ::"r"(before_)); }

 private:
  std::uint64_t before_;
#endif
};

void run_serially(Index tiles, detail::TileBody body, void* context) {
  const FlushDenormals flush;
  for (Index i = 0; i < tiles; ++i) body(context, i);
}

}  // namespace

namespace detail {

void run_tiles(Index tiles, TileBody body, void* context) {
  const int threads = static_cast<int>(std::min<Index>(tiles, omp_get_max_threads()));
  if (threads <= 1 || omp_in_parallel()) {
    run_serially(tiles, body, context);
    return;
  }
  std::exception_ptr failure;
#pragma omp parallel num_threads(threads)
  {
    const FlushDenormals flush;
#pragma omp for schedule(dynamic, 1) nowait
    for (Index i = 0; i < tiles; ++i) {
      try {
        body(context, i);
      } catch (...) {
#pragma omp critical(handgrad_tile_failure)
        if (!failure) failure = std::current_exception();
      }
    }
  }
  if (failure) std::rethrow_exception(failure);
}

}  // namespace detail

int thread_count() { return omp_get_max_threads(); }

int available_cores() { return omp_get_num_procs(); }

ThreadScope::ThreadScope(int threads) : before_(omp_get_max_threads()) { omp_set_num_threads(std::max(1, threads)); }

ThreadScope::~ThreadScope() { omp_set_num_threads(before_); }

}  // namespace handgrad
