#include "handgrad/core/gemm.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>

#include "core/eigen.h"
#include "core/signal_guard.h"
#include "handgrad/core/errors.h"
#include "handgrad/core/parallel.h"
#if defined(HANDGRAD_ONEDNN)
#include <dnnl.h>
#endif

namespace handgrad::gemm {
namespace {

template <class S>
void multiply_with_eigen(Operand<S> a, Operand<S> b, S scale, Store store, Rows<S> c) {
  const auto put = [&](const auto& product) {
    if (store == Store::add) {
      eigen_map(c).noalias() += scale * product;
    } else {
      eigen_map(c).noalias() = scale * product;
    }
  };
  const auto ma = eigen_map(a.matrix), mb = eigen_map(b.matrix);
  if (a.transpose == Transpose::no) {
    b.transpose == Transpose::no ? put(ma * mb) : put(ma * mb.transpose());
  } else {
    b.transpose == Transpose::no ? put(ma.transpose() * mb) : put(ma.transpose() * mb.transpose());
  }
}

#if defined(HANDGRAD_ONEDNN)
void multiply_with_onednn(Operand<float> a, Operand<float> b, float scale, Store store, Rows<float> c) {
  // In a parallel region of one thread oneDNN would start threads of its own, and bits would depend on their number.
  const ThreadScope one(1);
  const dnnl_status_t status =
      dnnl_sgemm(a.transpose == Transpose::no ? 'N' : 'T', b.transpose == Transpose::no ? 'N' : 'T', c.rows, c.cols,
                 a.cols(), scale, a.matrix.data, a.matrix.stride, b.matrix.data, b.matrix.stride,
                 store == Store::add ? 1.0f : 0.0f, c.data, c.stride);
  if (status == dnnl_out_of_memory) throw ResourceError("matrix product: oneDNN could not allocate memory", 0);
  if (status != dnnl_success) {
    throw ShapeError(fmt::format("matrix product: oneDNN refuses {} x {} x {} (status {})", c.rows, c.cols, a.cols(),
                                 static_cast<int>(status)));
  }
}
#endif

}  // namespace

template <class S>
void multiply(Operand<S> a, Operand<S> b, S scale, Store store, Rows<S> c) {
  assert(a.rows() == c.rows && b.cols() == c.cols && a.cols() == b.rows());
  const ProductGuard guard(
      {c.rows, c.cols, a.cols(), a.transpose == Transpose::yes, b.transpose == Transpose::yes, store == Store::add});
#if defined(HANDGRAD_ONEDNN)
  if constexpr (std::is_same_v<S, float>) {
    multiply_with_onednn(a, b, scale, store, c);
    return;
  }
#endif
  multiply_with_eigen(a, b, scale, store, c);
}

template <class S>
void multiply_tiled(Operand<S> a, Operand<S> b, S scale, Store store, Rows<S> c, const ProductTiles& tiles) {
  const Index block = tiles.block > 0 ? std::min(tiles.block, c.rows) : c.rows;
  const Index rows_in_tile = std::min(tiles.rows, block);
  const Index tiles_in_block = (block + rows_in_tile - 1) / rows_in_tile;
  const Index row_tiles = (c.rows + block - 1) / block * tiles_in_block;
  const Index col_tiles = (c.cols + tiles.cols - 1) / tiles.cols;
  const Index inner = a.cols();
  const Index inner_step = tiles.inner > 0 ? tiles.inner : inner;
  parallel_tiles(row_tiles * col_tiles, [&](Index tile) {
    const Index row_tile = tile % row_tiles, col_tile = tile / row_tiles;
    const Index block_begin = row_tile / tiles_in_block * block;
    const Index row = block_begin + row_tile % tiles_in_block * rows_in_tile;
    const Index row_end = std::min({row + rows_in_tile, block_begin + block, c.rows});
    const Index col = col_tile * tiles.cols, cols = std::min(tiles.cols, c.cols - col);
    if (row >= row_end) return;
    const Rows<S> out = c.slice(row, row_end - row).columns(col, cols);
    for (Index k = 0; k < inner; k += inner_step) {
      const Index depth = std::min(inner_step, inner - k);
      multiply<S>(a.row_range(row, row_end - row).column_range(k, depth), b.row_range(k, depth).column_range(col, cols),
                  scale, k == 0 ? store : Store::add, out);
    }
  });
}

Index block_rows(Index time) {
  if (time < 1) throw RangeError(fmt::format("block_rows: a sequence must have at least 1 row, got {}", time));
  return (256 + time - 1) / time * time;
}

const char* kernel_name() {
#if defined(HANDGRAD_ONEDNN)
  static const std::string name = [] {
    const dnnl_version_t* v = dnnl_version();
    return fmt::format("oneDNN {}.{}.{}", v->major, v->minor, v->patch);
  }();
  return name.c_str();
#else
  return "Eigen " EIGEN_MAKESTRING(EIGEN_WORLD_VERSION) "." EIGEN_MAKESTRING(EIGEN_MAJOR_VERSION) "." EIGEN_MAKESTRING(
      EIGEN_MINOR_VERSION);
#endif
}

const char* instruction_set() {
#if defined(HANDGRAD_ONEDNN)
  switch (dnnl_get_effective_cpu_isa()) {
    case dnnl_cpu_isa_all:
      return "all";
    case dnnl_cpu_isa_sse41:
      return "SSE4.1";
    case dnnl_cpu_isa_avx:
      return "AVX";
    case dnnl_cpu_isa_avx2:
    case dnnl_cpu_isa_avx2_vnni:
      return "AVX2";
    case dnnl_cpu_isa_avx512_mic:
    case dnnl_cpu_isa_avx512_mic_4ops:
    case dnnl_cpu_isa_avx512_core:
    case dnnl_cpu_isa_avx512_core_vnni:
    case dnnl_cpu_isa_avx512_core_bf16:
      return "AVX-512";
    default:
      return "AVX-512 and later";
  }
#elif defined(__AVX512F__)
  return "AVX-512";
#elif defined(__AVX2__)
  return "AVX2";
#else
  return "baseline";
#endif
}

#define HANDGRAD_INSTANTIATE(S)                                         \
  template void multiply<S>(Operand<S>, Operand<S>, S, Store, Rows<S>); \
  template void multiply_tiled<S>(Operand<S>, Operand<S>, S, Store, Rows<S>, const ProductTiles&);
HANDGRAD_INSTANTIATE(float)
HANDGRAD_INSTANTIATE(double)
HANDGRAD_INSTANTIATE(std::complex<double>)
#undef HANDGRAD_INSTANTIATE

}  // namespace handgrad::gemm
