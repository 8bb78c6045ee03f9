#pragma once

#include "handgrad/core/types.h"

namespace handgrad {

// Signals and matrix products. oneDNN's AVX-512 kernels point the stack pointer into their workspace on the heap while
// they run. A signal handler that runs on that stack writes its frame over the heap below the workspace. Asynchronous
// signals are therefore blocked while a thread multiplies. Blocked signals stay pending, or the kernel gives them to
// another thread of the process. Signals that a thread raises itself by a fault (SIGSEGV and its kin) stay unblocked.

/// A thread's share of a parallel region, or a serial stretch of work. The first product inside blocks signals; they
/// stay blocked until the region ends, so that a product costs no system call. A pending signal is delivered between
/// two products or tiles, about every 10 ms. Regions nest.
class ProductRegion {
 public:
  ProductRegion();
  ~ProductRegion();
  ProductRegion(const ProductRegion&) = delete;
  ProductRegion& operator=(const ProductRegion&) = delete;

  /// Call between two tiles: delivers pending signals when it is time.
  static void between_tiles();
};

/// What distinguishes products for the library that computes them.
struct ProductShape {
  Index rows = 0, cols = 0, inner = 0;
  bool transpose_a = false, transpose_b = false, adds = false;
};

/// Held during one product. Signals are blocked when the constructor returns. The caller's mask is restored exactly,
/// at the end of the outermost region, or of the product if there is none.
class ProductGuard {
 public:
  explicit ProductGuard(const ProductShape& shape);
  ~ProductGuard();
  ProductGuard(const ProductGuard&) = delete;
  ProductGuard& operator=(const ProductGuard&) = delete;

 private:
  unsigned kind_;
};

/// True once exit() has begun. Threads that multiply are then parked, but for the one that called exit().
bool process_is_exiting();

/// True while the calling thread holds a ProductGuard. Async-signal-safe: the tests ask it in their handlers.
bool inside_product();

}  // namespace handgrad
