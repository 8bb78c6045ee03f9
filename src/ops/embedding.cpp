#include "handgrad/ops/embedding.h"

#include <fmt/format.h>

#include <vector>

#include "core/instantiate.h"
#include "handgrad/autograd/output.h"
#include "handgrad/core/errors.h"
#include "ops/check.h"
#include "ops/elementwise.h"

namespace handgrad {
namespace {

template <class Id>
void check_ids(std::span<const Id> ids, Index rows) {
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] < 0 || ids[i] >= rows) {
      throw RangeError(fmt::format("embedding: id {} at index {} is outside [0, {})", ids[i], i, rows));
    }
  }
}

template <class T, class Id, class U>
void check_lookup(const char* kernel, const Rows<T>& table, std::span<const Id> ids, const Rows<U>& y) {
  require_rows(kernel, table.rows, table.cols, table);
  require_rows(kernel, std::ssize(ids), table.cols, y);
  check_ids(ids, table.rows);
}

void check_table(const Shape& table) {
  if (table.rank() == 2) return;
  throw ShapeError(fmt::format("embedding: a table (V, C) is needed, got {}", table.to_string()));
}

template <class S, class Id>
Var<S> look_up(Var<S> table, std::span<const Id> ids, const Shape& shape) {
  check_ids(ids, table.extent(0));  // before a node is made
  auto y = output("embedding", shape, table);
  embedding_forward<S, Id>(table.rows("embedding"), ids, y.rows());
  return y.saves(y.copy(ids)).on_backward([](const auto& saved, auto dy, auto dtable) {
    const auto& [ids_saved] = saved;
    embedding_backward<S, Id>(ids_saved, dy.rows(), dtable.rows());
  });
}

Shape appended(const Shape& shape, Index extent) {
  std::vector<Index> extents(shape.extents().begin(), shape.extents().end());
  extents.push_back(extent);
  return Shape(extents);
}

}  // namespace

template <class S, class Id>
void embedding_forward(Rows<const S> table, std::span<const Id> ids, Rows<S> y) {
  check_lookup("embedding_forward", table, ids, y);
  for_each_row(y.rows, y.cols, [&](Index r) {
    const S* from = table.row(ids[r]);
    std::copy(from, from + y.cols, y.row(r));
  });
}

// dtable[ids[i]] += dy[i]; threads take different columns, so that every element has one writer
template <class S, class Id>
void embedding_backward(std::span<const Id> ids, Rows<const S> dy, Rows<S> dtable) {
  check_lookup("embedding_backward", dtable, ids, dy);
  constexpr Index tile = 64;
  parallel_ranges(dy.cols, tile, [&](Index begin, Index end) {
    for (Index r = 0; r < dy.rows; ++r) {
      const S* upstream = dy.row(r);
      S* to = dtable.row(ids[r]);
      for (Index c = begin; c < end; ++c) to[c] += upstream[c];
    }
  });
}

template <class S>
Var<S> embedding(Var<S> table, std::span<const TokenId> ids, const Shape& shape) {
  require_operands("embedding", table);
  check_table(table.shape());
  if (std::ssize(ids) != shape.size()) {
    throw ShapeError(
        fmt::format("embedding: one id per element of {1} is needed, got {0}", ids.size(), shape.to_string()));
  }
  const Shape y_shape = appended(shape, table.extent(-1));
  return look_up<S, TokenId>(std::move(table), ids, y_shape);
}

template <class S>
Var<S> embedding(Var<S> table, PositionsRef positions, Index batch) {
  require_operands("embedding", table);
  check_table(table.shape());
  if (!positions || positions.time < 1) throw ShapeError("embedding: positions are needed, got none");
  if (batch < 1) throw ShapeError(fmt::format("embedding: the batch must be 1 or more, got {}", batch));
  if (positions.batch != 1 && positions.batch != batch) {
    throw ShapeError(
        fmt::format("embedding: positions of 1 or {} sequences are needed, got {}", batch, positions.batch));
  }
  std::vector<Index> ids;
  ids.reserve(batch * positions.time);
  for (Index b = 0; b < batch; ++b) {
    for (Index t = 0; t < positions.time; ++t) ids.push_back(positions.at(b, t));
  }
  const Shape y_shape{batch, positions.time, table.extent(-1)};
  return look_up<S, Index>(std::move(table), ids, y_shape);
}

#define HANDGRAD_INSTANTIATE(S)                                                                  \
  template void embedding_forward<S, TokenId>(Rows<const S>, std::span<const TokenId>, Rows<S>); \
  template void embedding_forward<S, Index>(Rows<const S>, std::span<const Index>, Rows<S>);     \
  template Var<S> embedding<S>(Var<S>, std::span<const TokenId>, const Shape&);                  \
  template Var<S> embedding<S>(Var<S>, PositionsRef, Index);
HANDGRAD_FOR_ALL_SCALARS(HANDGRAD_INSTANTIATE)
#undef HANDGRAD_INSTANTIATE
#define HANDGRAD_INSTANTIATE(S)                                                                   \
  template void embedding_backward<S, TokenId>(std::span<const TokenId>, Rows<const S>, Rows<S>); \
  template void embedding_backward<S, Index>(std::span<const Index>, Rows<const S>, Rows<S>);
HANDGRAD_FOR_REAL_SCALARS(HANDGRAD_INSTANTIATE)
#undef HANDGRAD_INSTANTIATE

}  // namespace handgrad
