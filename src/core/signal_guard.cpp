#include "core/signal_guard.h"

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdlib>

namespace handgrad {
namespace {

// The kernel's signal set: bit s - 1 for signal s. pthread_sigmask() leaves out two signals that glibc uses itself
// (for pthread_cancel and setuid); their handlers would harm a product like any other, so the system call is made
// directly.
using KernelMask = std::uint64_t;

constexpr KernelMask bit(int signal) { return KernelMask{1} << (signal - 1); }

// Synchronous faults are not blocked: a blocked SIGSEGV ends the process without its handler.
constexpr KernelMask blocked =
    ~(bit(SIGSEGV) | bit(SIGBUS) | bit(SIGFPE) | bit(SIGILL) | bit(SIGTRAP) | bit(SIGABRT) | bit(SIGSYS));

constexpr std::int64_t window_ns = 10'000'000;

// Changes the mask and preserves errno for the caller of the library.
void block(KernelMask& before) {
  const int error = errno;
  ::syscall(SYS_rt_sigprocmask, SIG_BLOCK, &blocked, &before, sizeof blocked);
  errno = error;
}

void restore(KernelMask before) {
  const int error = errno;
  ::syscall(SYS_rt_sigprocmask, SIG_SETMASK, &before, nullptr, sizeof before);
  errno = error;
}

std::int64_t coarse_now_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

struct ThreadState {
  int regions = 0;
  volatile std::sig_atomic_t products = 0;
  bool engaged = false;  // signals are blocked
  KernelMask before = 0;
  std::int64_t engaged_ns = 0;
};
thread_local ThreadState state;

// exit() frees the kernels of oneDNN while other threads may still multiply. During exit(), a thread that begins a
// product waits until the process ends, and exit() waits up to 5 s for products that have begun.
std::atomic<int> engaged_threads = 0;
std::atomic<bool> exiting = false;
thread_local bool exits = false;

void wait_for_products() {
  exits = true;
  exiting = true;
  const int own = state.engaged ? 1 : 0;
  constexpr timespec pause{0, 1'000'000};
  for (int ms = 0; ms < 5000 && engaged_threads > own; ++ms) ::nanosleep(&pause, nullptr);
}

[[noreturn]] void park() {
  for (;;) ::pause();
}

void engage() {
  block(state.before);
  engaged_threads.fetch_add(1);
  if (exiting.load() && !exits) {
    engaged_threads.fetch_sub(1);
    park();
  }
  state.engaged = true;
  state.engaged_ns = coarse_now_ns();
}

void disengage() {
  state.engaged = false;
  engaged_threads.fetch_sub(1);
  restore(state.before);
}

// Unblocks signals for a moment if they have been blocked long enough.
void deliver_when_due() {
  if (!state.engaged || (coarse_now_ns() - state.engaged_ns < window_ns && !exiting.load(std::memory_order_relaxed))) {
    return;
  }
  disengage();
  engage();
}

// The kind of a product: its transpositions and the magnitudes of its extents.
unsigned kind_of(const ProductShape& shape) {
  const auto magnitude = [](Index extent) {
    return std::min(static_cast<unsigned>(std::bit_width(static_cast<std::uint64_t>(extent))), 7u);
  };
  const unsigned extents = magnitude(shape.rows) << 6 | magnitude(shape.cols) << 3 | magnitude(shape.inner);
  return (shape.transpose_a ? 1u : 0u) | (shape.transpose_b ? 2u : 0u) | (shape.adds ? 4u : 0u) | extents << 3;
}

// Handlers of exit() run in reverse order of registration, and the first product of a kind may create kernels. The
// handler is registered again after each such product, so that it runs before any kernel is freed.
void register_exit_handler(unsigned kind) {
  static std::atomic<std::uint64_t> seen[4096 / 64];
  std::atomic<std::uint64_t>& word = seen[kind / 64];
  const std::uint64_t mark = std::uint64_t{1} << kind % 64;
  if ((word.load(std::memory_order_relaxed) & mark) != 0 || (word.fetch_or(mark) & mark) != 0) return;
  std::atexit(wait_for_products);
}

}  // namespace

ProductRegion::ProductRegion() { ++state.regions; }

ProductRegion::~ProductRegion() {
  if (--state.regions == 0 && state.engaged) disengage();
}

void ProductRegion::between_tiles() { deliver_when_due(); }

ProductGuard::ProductGuard(const ProductShape& shape) : kind_(kind_of(shape)) {
  if (state.products == 0) {
    if (state.engaged) {
      deliver_when_due();
    } else {
      engage();
    }
  }
  state.products = state.products + 1;
}

ProductGuard::~ProductGuard() {
  state.products = state.products - 1;
  if (state.products > 0) return;
  register_exit_handler(kind_);
  if (state.regions == 0) disengage();
}

bool process_is_exiting() { return exiting.load(std::memory_order_relaxed); }

bool inside_product() { return state.products > 0; }

}  // namespace handgrad
