#include "handgrad/core/parallel.h"

#include <fmt/format.h>
#include <omp.h>
#include <pthread.h>
#include <sched.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <vector>

#include "core/float_environment.h"
#include "core/signal_guard.h"
#include "handgrad/core/errors.h"

namespace handgrad {
namespace {

// A forked child has only the calling thread, but OpenMP still has the thread pool of the parent: the first parallel
// region would wait for threads that do not exist. The child of a process with several threads therefore runs serially.
std::atomic<bool> threads_at_fork = false;
std::atomic<bool> works_alone = false;

void before_fork() {
  struct stat tasks {};
  // The link count of a folder is 2 plus its number of subfolders; /proc/self/task has one subfolder per thread.
  threads_at_fork = ::stat("/proc/self/task", &tasks) != 0 || tasks.st_nlink > 3;
}
void in_child() {
  if (threads_at_fork) works_alone = true;
}
[[maybe_unused]] const int fork_is_watched = ::pthread_atfork(before_fork, nullptr, in_child);

void run_serially(Index tiles, detail::TileBody body, void* context) {
  const FloatEnvironment environment;
  const ProductRegion region;
  for (Index i = 0; i < tiles; ++i) {
    body(context, i);
    ProductRegion::between_tiles();
  }
}

}  // namespace

namespace detail {

void run_tiles(Index tiles, TileBody body, void* context) {
  const int threads = static_cast<int>(std::min<Index>(tiles, thread_count()));
  if (threads <= 1 || omp_in_parallel() || process_is_exiting()) {
    run_serially(tiles, body, context);
    return;
  }
  std::exception_ptr failure;
#pragma omp parallel num_threads(threads)
  {
    const FloatEnvironment environment;
    const ProductRegion region;
#pragma omp for schedule(dynamic, 1) nowait
    for (Index i = 0; i < tiles; ++i) {
      try {
        body(context, i);
      } catch (...) {
#pragma omp critical(handgrad_tile_failure)
        if (!failure) failure = std::current_exception();
      }
      ProductRegion::between_tiles();
    }
  }
  if (failure) std::rethrow_exception(failure);
}

void refuse_tile(Index tile) {
  throw RangeError(fmt::format("parallel_ranges: a tile must have at least 1 element, got {}", tile));
}

}  // namespace detail

int thread_count() { return works_alone ? 1 : std::min(omp_get_max_threads(), omp_get_thread_limit()); }

int available_cores() { return omp_get_num_procs(); }

void release_places() {
  cpu_set_t all;
  CPU_ZERO(&all);
  for (int place = 0; place < omp_get_num_places(); ++place) {
    std::vector<int> cores(omp_get_place_num_procs(place));
    omp_get_place_proc_ids(place, cores.data());
    for (const int core : cores) {
      if (core >= 0 && core < CPU_SETSIZE) CPU_SET(core, &all);
    }
  }
  if (CPU_COUNT(&all) > 0) ::sched_setaffinity(0, sizeof all, &all);
}

ThreadScope::ThreadScope(int threads) : before_(omp_get_max_threads()) { omp_set_num_threads(std::max(1, threads)); }

ThreadScope::~ThreadScope() { omp_set_num_threads(before_); }

}  // namespace handgrad
