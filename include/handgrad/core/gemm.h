#pragma once

#include "handgrad/core/views.h"

namespace handgrad::gemm {

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

/// c = scale a b (+ c), computed by the calling thread alone. The order of summation depends on the shapes only. Memory
/// of `c` must not overlap that of `a` and `b`.
template <class S>
void multiply(Operand<S> a, Operand<S> b, S scale, Store store, Rows<S> c);

/// How a large product is split into tiles. Tiles depend on shapes alone, so bits do not depend on the number of
/// threads.
struct ProductTiles {
  Index rows = 128;  ///< Rows of the output in a tile.
  Index cols = 384;  ///< Columns of the output in a tile.
  Index block = 0;   ///< Row tiles do not cross multiples of this (rows of a block of sequences); 0: no such limit.
  Index inner = 0;   ///< The inner dimension is split at multiples of this; the parts are added in order. 0: not split.
};

/// c = scale a b (+ c), tile by tile, in parallel.
template <class S>
void multiply_tiled(Operand<S> a, Operand<S> b, S scale, Store store, Rows<S> c, const ProductTiles& tiles);

/// Rows of a block of whole sequences. Gradients are summed per block, so that splitting a batch between blocks changes
/// no bit. A block is ceil(256 / time) sequences of `time` rows each. Throws RangeError for time below 1.
Index block_rows(Index time);

/// The library that multiplies float matrices, for example "oneDNN 2.6.3". Other scalars are multiplied by Eigen.
const char* kernel_name();

/// The instruction set that it uses on this machine, for example "AVX2".
const char* instruction_set();

}  // namespace handgrad::gemm
