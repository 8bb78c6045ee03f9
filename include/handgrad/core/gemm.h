#pragma once

#include <string>

#include "handgrad/core/views.h"

namespace handgrad {

/// Is an operand of a product read as stored, or transposed?
enum class Transpose : bool { no, yes };

template <class S>
struct Operand {
  Rows<const S> matrix;
  Transpose transpose = Transpose::no;

  Index rows() const { return transpose == Transpose::no ? matrix.rows : matrix.cols; }
  Index cols() const { return transpose == Transpose::no ? matrix.cols : matrix.rows; }
  /// Rows [begin, begin + count) of the operand, after the transposition.
  Operand row_range(Index begin, Index count) const {
    return {transpose == Transpose::no ? matrix.slice(begin, count) : matrix.columns(begin, count), transpose};
  }
  Operand column_range(Index begin, Index count) const {
    return {transpose == Transpose::no ? matrix.columns(begin, count) : matrix.slice(begin, count), transpose};
  }
};

/// Does a product replace its output, or is it added to the output?
enum class Store : bool { assign, add };

/// c = scale a b (+ c), by the calling thread alone. One call is one order of summation: equal shapes and values give
/// equal bits. Memory of `c` must not overlap that of `a` and `b`.
template <class S>
void multiply(Operand<S> a, Operand<S> b, S scale, Store store, Rows<S> c);

/// How a large product is cut. Tiles depend on shapes alone, so bits do not depend on the number of threads.
struct ProductTiles {
  Index rows = 128;  ///< Rows of the output in a tile.
  Index cols = 384;  ///< Columns of the output in a tile.
  Index block = 0;   ///< Row tiles do not cross multiples of this (rows of a block of sequences); 0: no such limit.
  Index inner = 0;   ///< The inner dimension is cut at multiples of this, summed in order; 0: not cut.
};

/// c = scale a b (+ c), tile by tile, in parallel.
template <class S>
void multiply_tiled(Operand<S> a, Operand<S> b, S scale, Store store, Rows<S> c, const ProductTiles& tiles);

/// Rows of a block of whole sequences: the unit in which gradients are summed, so that splitting a batch at multiples
/// of it changes no bit. A block is ceil(256 / time) sequences of `time` rows each. Throws RangeError for time below 1.
Index block_rows(Index time);

/// Raised by every change of this program that changes the bits of training.
inline constexpr int numerics_version = 2;

/// What decides the bits of training beside config, seed and data: threads and the split of a batch do not.
struct Numerics {
  int version = numerics_version;
  std::string gemm;          ///< gemm_kernel_name()
  std::string instructions;  ///< The set that it uses on this machine, "AVX2"; empty in files that do not say.
  bool operator==(const Numerics&) const = default;
};
Numerics this_numerics();

/// What multiplies float matrices, for example "oneDNN 2.6.3"; `multiply` of other scalars is Eigen's.
const char* gemm_kernel_name();

}  // namespace handgrad
