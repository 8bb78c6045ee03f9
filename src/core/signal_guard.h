#pragma once

#include "handgrad/core/types.h"

namespace handgrad {

// Signals and matrix products. oneDNN's AVX-512 kernels point the stack pointer into their workspace on the heap while
// they run. A signal handler that runs on that stack writes its frame over the heap below the workspace. Asynchronous
// signals are therefore blocked while a thread multiplies. Blocked signals stay pending, or the kernel gives them to
// another thread of the process. Signals that a fault of the thread raises (SIGSEGV, SIGBUS, ...) stay unblocked.

/// The part of a parallel region, or of serial work, that one thread executes. The first product in it blocks signals;
/// they stay blocked until the region ends, so that further products cost no system call. Pending signals are delivered
/// between two products or tiles, about every 10 ms. Regions nest.
class ProductRegion {
 public:
  ProductRegion();
  ~ProductRegion();
  ProductRegion(const ProductRegion&) = delete;
  ProductRegion& operator=(const ProductRegion&) = delete;

  /// Call between two tiles: delivers pending signals if the last delivery was long enough ago.
  static void between_tiles();
};

/// The properties for which oneDNN may create a kernel of its own.
struct ProductShape {
  Index rows = 0, cols = 0, inner = 0;
  bool transpose_a = false, transpose_b = false, adds = false;
};

/// The scope of one product, in which signals are blocked. The mask of the caller is restored exactly at the end of the
/// outermost region, or of the product if there is no region.
class ProductGuard {
 public:
  explicit ProductGuard(const ProductShape& shape);
  ~ProductGuard();
  ProductGuard(const ProductGuard&) = delete;
  ProductGuard& operator=(const ProductGuard&) = delete;

 private:
  unsigned kind_;
};

/// True once exit() has begun. Products then wait for ever, except on the thread that called exit().
bool process_is_exiting();

/// True while the calling thread holds a ProductGuard. Async-signal-safe; tests call it in signal handlers.
bool inside_product();

}  // namespace handgrad
