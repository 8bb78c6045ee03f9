#pragma once

#include <algorithm>

#include "handgrad/core/gemm.h"
#include "handgrad/core/parallel.h"
#include "handgrad/core/views.h"

namespace handgrad {

/// Calls row(r) for every row, in parallel tiles of about elementwise_tile elements.
template <class F>
void for_each_row(Index rows, Index cols, F&& row) {
  const Index tile = std::max<Index>(1, elementwise_tile / std::max<Index>(1, cols));
  parallel_ranges(rows, tile, [&](Index begin, Index end) {
    for (Index r = begin; r < end; ++r) row(r);
  });
}

/// y = f(x), element by element.
template <class S, class F>
void map_forward(Rows<const S> x, Rows<S> y, F f) {
  for_each_row(x.rows, x.cols, [&](Index r) {
    const S* in = x.row(r);
    S* out = y.row(r);
    for (Index c = 0; c < x.cols; ++c) out[c] = f(in[c]);
  });
}

/// dx += dy f'(x), element by element.
template <class S, class F>
void map_backward(Rows<const S> x, Rows<const S> dy, Rows<S> dx, F slope) {
  for_each_row(x.rows, x.cols, [&](Index r) {
    const S *in = x.row(r), *upstream = dy.row(r);
    S* out = dx.row(r);
    for (Index c = 0; c < x.cols; ++c) out[c] += upstream[c] * slope(in[c]);
  });
}

/// into[c] += sum over rows r of row(r)(c). There is one partial sum per block of `block` rows, and blocks are added in
/// order. Threads take tiles of columns, so that every element has one writer.
template <class S, class F>
void add_column_sums(Index rows, Index cols, Index block, S* into, F row) {
  constexpr Index tile = 64;
  parallel_ranges(cols, tile, [&](Index begin, Index end) {
    for (Index first = 0; first < rows; first += block) {
      S sums[tile] = {};
      const Index last = std::min(first + block, rows);
      for (Index r = first; r < last; ++r) {
        const auto term = row(r);
        for (Index c = begin; c < end; ++c) sums[c - begin] += term(c);
      }
      for (Index c = begin; c < end; ++c) into[c] += sums[c - begin];
    }
  });
}

/// Rows in a block of sequences for an array whose last two axes are (time, features).
inline Index rows_in_block(const Shape& shape) { return shape.rank() < 2 ? 1 : gemm::block_rows(shape[-2]); }
}  // namespace handgrad
