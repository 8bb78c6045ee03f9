#include "handgrad/ops/causal_attention.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "core/instantiate.h"
#include "core/lanes.h"
#include "handgrad/autograd/output.h"
#include "handgrad/core/errors.h"
#include "handgrad/core/gemm.h"
#include "ops/attention_checks.h"
#include "ops/attention_visibility.h"
#include "ops/seen_product.h"

namespace handgrad {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

// The memory of one thread for its tiles; kept between calls, so that a step allocates nothing.
template <class S>
struct TileMemory {
  using Real = decltype(real_part(S{}));
  Buffer<S> scores, dscores, delta;
  Buffer<Real> row_max;
  Buffer<Accumulator<S>> row_sum;

  static TileMemory& of_this_thread(const AttentionOptions& options, Index queries) {
    thread_local TileMemory own;
    const Index area = options.query_tile * options.key_tile;
    own.fit(own.scores, area);
    own.fit(own.dscores, area);
    own.fit(own.delta, queries);
    own.fit(own.row_max, options.query_tile);
    own.fit(own.row_sum, options.query_tile);
    return own;
  }

 private:
  template <class T>
  static void fit(Buffer<T>& buffer, Index size) {
    if (buffer.size() < size) buffer = Buffer<T>(size);
  }
};

// The arguments that all tiles of one call share.
template <class S>
struct AttentionCall {
  const AttentionInputs<S>& in;
  const AttentionOptions& options;
  Visibility visibility;
  double scale;

  AttentionCall(const AttentionInputs<S>& inputs, const AttentionOptions& chosen)
      : in(inputs),
        options(chosen),
        visibility(chosen, Shape{in.q.batch, in.q.heads, in.q.time, in.k.time}),
        scale(attention_scale(chosen, in.q.width)) {}
};

// Replaces the scores s of row r by exp(s - shift - log_sum), and hidden scores by 0.
template <class S, class R>
void exponentials(const Visibility& visibility, const ScoreTile& tile, Index r, S* s, R shift, S log_sum) {
  const Index count = visibility.causal_count(tile, r);
  if (visibility.masked()) {
    const std::uint8_t* allowed = visibility.mask_row(tile, r);
    const Index step = visibility.mask_step();
    for (Index c = 0; c < count; ++c) s[c] = allowed[c * step] ? exp_of((s[c] - shift) - log_sum) : S(0);
  } else {
    for (Index c = 0; c < count; ++c) s[c] = exp_of((s[c] - shift) - log_sum);
  }
  for (Index c = count; c < tile.cols; ++c) s[c] = S(0);
}

// The largest visible score of row r; -infinity if there is none.
template <class S>
auto visible_max(const Visibility& visibility, const ScoreTile& tile, Index r, const S* s) {
  using R = decltype(real_part(S{}));
  const Index count = visibility.causal_count(tile, r);
  if (count == 0) return static_cast<R>(-infinity);
  if (!visibility.masked()) return lane_max<S>(count, [=](Index c) { return s[c]; });
  const std::uint8_t* allowed = visibility.mask_row(tile, r);
  const Index step = visibility.mask_step();
  return lane_max<S>(count, [=](Index c) { return allowed[c * step] ? s[c] : S(static_cast<R>(-infinity)); });
}

template <class S>
void apply_dropout(const AttentionCall<S>& call, const ScoreTile& tile, S* p) {
  const DropoutMask& dropout = call.options.dropout;
  if (!dropout.active()) return;
  const Heads<const S>& q = call.in.q;
  const S keep = constant<S>(dropout.keep_scale());
  for (Index r = 0; r < tile.rows; ++r) {
    S* row = p + r * tile.cols - tile.k0;
    const auto number = static_cast<std::uint64_t>((tile.b * q.heads + tile.h) * q.time + tile.q0 + r);
    dropout.row(number, call.in.k.time, tile.k0, tile.k0 + tile.cols,
                [&](Index c, bool kept) { row[c] = kept ? row[c] * keep : S(0); });
  }
}

// One tile of the forward pass: replaces the scores by probabilities, not yet divided by their sum, and rescales y to
// the new maximum.
template <class S, class R>
void online_softmax(const Visibility& visibility, const ScoreTile& tile, S* s, R* row_max, Accumulator<S>* row_sum,
                    Rows<S> y) {
  const bool first = tile.k0 == 0;
  for (Index r = 0; r < tile.rows; ++r) {
    S* row = s + r * tile.cols;
    const R own = visible_max<S>(visibility, tile, r, row);
    const R before = row_max[r];
    const R now = before < own || own != own ? own : before;
    if (now == -infinity) {
      std::fill(row, row + tile.cols, S(0));
      continue;
    }
    exponentials<S>(visibility, tile, r, row, now, S(0));
    const auto sum = lane_sum<Accumulator<S>>(tile.cols, [=](Index c) { return Accumulator<S>(row[c]); });
    const R shrink = first ? R(0) : exp_of(static_cast<R>(before - now));
    row_sum[r] = row_sum[r] * static_cast<double>(shrink) + sum;
    row_max[r] = now;
    if (!first && shrink != R(1)) {
      S* out = y.row(r);
      for (Index c = 0; c < y.cols; ++c) out[c] *= shrink;
    }
  }
}

// s = scale q k^T for one tile, rows adjacent.
template <class S>
Rows<S> tile_scores(Rows<const S> q, Rows<const S> k, double scale, const ScoreTile& tile, S* memory) {
  const Rows<S> s{memory, tile.rows, tile.cols, tile.cols};
  multiply<S>({q}, {k, Transpose::yes}, constant<S>(scale), Store::assign, s);
  return s;
}

// All keys for one tile of queries of one head. row_max, log_sum: of the tile's first row.
template <class S>
void forward_queries(const AttentionCall<S>& call, ScoreTile tile, S* row_max, S* log_sum, const Heads<S>& y) {
  const auto& [in, options, visibility, scale] = call;
  TileMemory<S>& memory = TileMemory<S>::of_this_thread(options, 0);
  const Index kv = tile.h / (in.q.heads / in.k.heads);
  const Rows<const S> q = in.q.head(tile.b, tile.h).slice(tile.q0, tile.rows);
  const Rows<const S> k = in.k.head(tile.b, kv), v = in.v.head(tile.b, kv);
  const Rows<S> out = y.head(tile.b, tile.h).slice(tile.q0, tile.rows);
  auto* maxima = memory.row_max.data();
  auto* sums = memory.row_sum.data();
  std::fill(maxima, maxima + tile.rows, -infinity);
  std::fill(sums, sums + tile.rows, Accumulator<S>{});
  const Index end = visibility.keys_end(tile.q0 + tile.rows, in.k.time);
  const bool finite = !visibility.hides() || all_finite(v.slice(0, end));
  for (tile.k0 = 0; tile.k0 < end; tile.k0 += options.key_tile) {
    tile.cols = std::min(options.key_tile, end - tile.k0);
    const Rows<S> s = tile_scores(q, k.slice(tile.k0, tile.cols), scale, tile, memory.scores.data());
    online_softmax<S>(visibility, tile, s.data, maxima, sums, out);
    apply_dropout<S>(call, tile, s.data);
    const auto sees = [&](Index r, Index key, Index) { return call.visibility.sees(tile, r, key); };
    multiply_seen<S>({s}, {v.slice(tile.k0, tile.cols)}, S(1), tile.k0 == 0 ? Store::assign : Store::add, out,
                     Transpose::no, finite, sees);
  }
  for (Index r = 0; r < tile.rows; ++r) {
    const bool empty = maxima[r] == -infinity;
    const S share = empty ? S(0) : from_accumulator<S>(1.0 / sums[r]);
    S* row = out.row(r);
    for (Index c = 0; c < out.cols; ++c) row[c] = empty ? S(0) : row[c] * share;
    row_max[r] = empty ? S(static_cast<float>(infinity)) : S(maxima[r]);
    log_sum[r] = empty ? S(0) : from_accumulator<S>(log_of(sums[r]));
  }
}

// ds = scale p (dp - delta) for row r, in place of dp; 0 where a score is hidden: there dp may have overflowed.
template <class S>
void score_gradient(const Visibility& visibility, const ScoreTile& tile, Index r, S scale, S delta, const S* p, S* dp) {
  const Index count = visibility.causal_count(tile, r);
  if (visibility.masked()) {
    const std::uint8_t* allowed = visibility.mask_row(tile, r);
    const Index step = visibility.mask_step();
    for (Index c = 0; c < count; ++c) dp[c] = allowed[c * step] ? scale * p[c] * (dp[c] - delta) : S(0);
  } else {
    for (Index c = 0; c < count; ++c) dp[c] = scale * p[c] * (dp[c] - delta);
  }
  for (Index c = count; c < tile.cols; ++c) dp[c] = S(0);
}

// If the sum of exponentials of a row is exactly 1, one probability is 1, and the sum of all others is below 2^-53. The
// exact p (dp - delta) of that key is then also below 2^-53 of its terms, and 0 if no other key is visible. The
// computed value is a difference of two rounding errors, which AdamW would scale up to whole steps. It is set to 0; NaN
// propagates.
template <class S>
void clear_certain(Index cols, const S* p, S* ds) {
  for (Index c = 0; c < cols; ++c) {
    if (p[c] > S(0.5)) ds[c] *= S(0);
  }
}

// One query head and its key head in the backward pass.
template <class S>
struct BackwardHead {
  Rows<const S> q, k, v, dy;
  Rows<S> dq, dk, dv;
  const S *row_max = nullptr, *log_sum = nullptr, *delta = nullptr;  // one element per query
  bool q_finite = false, k_finite = false, dy_finite = false;
};

// The contribution of one tile of scores to dq, dk and dv.
template <class S>
void backward_tile(const AttentionCall<S>& call, const BackwardHead<S>& head, const ScoreTile& tile,
                   TileMemory<S>& memory) {
  const Visibility& visibility = call.visibility;
  const Rows<const S> q = head.q.slice(tile.q0, tile.rows), k = head.k.slice(tile.k0, tile.cols),
                      v = head.v.slice(tile.k0, tile.cols), dy = head.dy.slice(tile.q0, tile.rows);
  const Rows<S> p = tile_scores(q, k, call.scale, tile, memory.scores.data());
  const Rows<S> ds{memory.dscores.data(), tile.rows, tile.cols, tile.cols};
  for (Index r = 0; r < tile.rows; ++r) {
    exponentials<S>(visibility, tile, r, p.row(r), head.row_max[tile.q0 + r], head.log_sum[tile.q0 + r]);
  }
  multiply<S>({dy}, {v, Transpose::yes}, S(1), Store::assign, ds);
  apply_dropout<S>(call, tile, ds.data);
  for (Index r = 0; r < tile.rows; ++r) {
    score_gradient<S>(visibility, tile, r, constant<S>(call.scale), head.delta[tile.q0 + r], p.row(r), ds.row(r));
    if (head.log_sum[tile.q0 + r] == S(0)) clear_certain(tile.cols, p.row(r), ds.row(r));
  }
  const auto sees = [&](Index r, Index key, Index) { return visibility.sees(tile, r, key); };
  const auto seen_by = [&](Index key, Index r, Index) { return visibility.sees(tile, r, key); };
  if (head.dq) {
    multiply_seen<S>({ds}, {k}, S(1), Store::add, head.dq.slice(tile.q0, tile.rows), Transpose::no, head.k_finite,
                     sees);
  }
  if (head.dk) {
    multiply_seen<S>({ds, Transpose::yes}, {q}, S(1), Store::add, head.dk.slice(tile.k0, tile.cols), Transpose::no,
                     head.q_finite, seen_by);
  }
  if (head.dv) {
    apply_dropout<S>(call, tile, p.data);
    multiply_seen<S>({p, Transpose::yes}, {dy}, S(1), Store::add, head.dv.slice(tile.k0, tile.cols), Transpose::no,
                     head.dy_finite, seen_by);
  }
}

// delta_i = sum_c dy_ic y_ic
template <class S>
void write_delta(Rows<const S> dy, Rows<const S> y, S* delta) {
  for (Index i = 0; i < y.rows; ++i) {
    const S *left = dy.row(i), *right = y.row(i);
    delta[i] = from_accumulator<S>(
        lane_sum<Accumulator<S>>(y.cols, [=](Index c) { return Accumulator<S>(left[c]) * Accumulator<S>(right[c]); }));
  }
}

// All tiles of scores of one query head.
template <class S>
void backward_query_head(const AttentionCall<S>& call, const BackwardHead<S>& head, Index b, Index h,
                         TileMemory<S>& memory) {
  const Index queries = call.in.q.time, keys = call.in.k.time;
  const Index query_tile = call.options.query_tile, key_tile = call.options.key_tile;
  for (Index k0 = 0; k0 < keys; k0 += key_tile) {
    const Index cols = std::min(key_tile, keys - k0);
    const Index first = call.visibility.first_query(k0) / query_tile * query_tile;
    for (Index q0 = first; q0 < queries; q0 += query_tile) {
      backward_tile(call, head, {b, h, q0, std::min(query_tile, queries - q0), k0, cols}, memory);
    }
  }
}

// The query heads of key head kv in sequence b, in order: one writer for dk and dv of the key head, and for dq of its
// query heads.
template <class S>
void backward_key_head(const AttentionCall<S>& call, const AttentionSaved<S>& saved, const Heads<const S>& dy,
                       const AttentionGradients<S>& to, Index b, Index kv) {
  const AttentionInputs<S>& in = call.in;
  TileMemory<S>& memory = TileMemory<S>::of_this_thread(call.options, in.q.time);
  const Index group = in.q.heads / in.k.heads;
  const auto part = [&](const Heads<S>& x, Index h) { return x ? x.head(b, h) : Rows<S>{}; };
  const auto usable = [&](const Rows<const S>& x) { return !call.visibility.hides() || all_finite(x); };
  BackwardHead<S> head;
  head.k = in.k.head(b, kv);
  head.v = in.v.head(b, kv);
  head.dk = part(to.dk, kv);
  head.dv = part(to.dv, kv);
  head.delta = memory.delta.data();
  head.k_finite = usable(head.k);
  for (Index h = kv * group; h < (kv + 1) * group; ++h) {
    const Index first_row = (b * in.q.heads + h) * in.q.time;
    head.q = in.q.head(b, h);
    head.dy = dy.head(b, h);
    head.dq = part(to.dq, h);
    head.row_max = &saved.statistics.row_max[first_row];
    head.log_sum = &saved.statistics.log_sum[first_row];
    head.q_finite = usable(head.q);
    head.dy_finite = usable(head.dy);
    write_delta<S>(head.dy, saved.y.head(b, h), memory.delta.data());
    backward_query_head(call, head, b, h, memory);
  }
}

}  // namespace

template <class S>
void causal_attention_forward(const AttentionInputs<S>& in, const AttentionOptions& options,
                              SoftmaxStatistics<S> statistics, Heads<S> y) {
  check_attention("causal_attention_forward", in, options);
  require_heads("causal_attention_forward", y, attention_output(in));
  require_statistics("causal_attention_forward", statistics, in.q);
  const AttentionCall<S> call(in, options);
  const Index tiles = (in.q.time + options.query_tile - 1) / options.query_tile;
  parallel_tiles(in.q.batch * in.q.heads * tiles, [&](Index unit) {
    const Index head = unit / tiles, q0 = unit % tiles * options.query_tile;
    const ScoreTile tile{head / in.q.heads, head % in.q.heads, q0, std::min(options.query_tile, in.q.time - q0), 0, 0};
    const Index row = head * in.q.time + q0;
    forward_queries<S>(call, tile, &statistics.row_max[row], &statistics.log_sum[row], y);
  });
}

// dv += p^T dy, ds = scale p (dy v^T - delta), dq += ds k, dk += ds^T q
template <class S>
void causal_attention_backward(const AttentionInputs<S>& in, const AttentionOptions& options,
                               const AttentionSaved<S>& saved, Heads<const S> dy,
                               const AttentionGradients<S>& gradients) {
  check_attention("causal_attention_backward", in, options);
  require_heads("causal_attention_backward", saved.y, attention_output(in));
  require_heads("causal_attention_backward", dy, attention_output(in));
  require_statistics("causal_attention_backward", saved.statistics, in.q);
  if (gradients.dq) require_heads("causal_attention_backward", gradients.dq, in.q);
  if (gradients.dk) require_heads("causal_attention_backward", gradients.dk, in.k);
  if (gradients.dv) require_heads("causal_attention_backward", gradients.dv, in.v);
  const AttentionCall<S> call(in, options);
  parallel_tiles(in.k.batch * in.k.heads, [&](Index unit) {
    backward_key_head<S>(call, saved, dy, gradients, unit / in.k.heads, unit % in.k.heads);
  });
}

template <class S>
Var<S> causal_attention(Var<S> q, Var<S> k, Var<S> v, const AttentionOptions& options) {
  require_operands("causal_attention", q, k, v);
  check_attention("causal_attention", q, k, v, options);  // before a node is made
  auto y = output("causal_attention", q.shape().with(-1, v.extent(-1)), q, k, v);
  const Index rows = q.extent(0) * q.extent(2) * q.extent(1);
  const SoftmaxStatistics<S> statistics{y.scratch(rows), y.scratch(rows)};
  const auto heads = [](const Var<S>& x) { return x.heads("causal_attention"); };
  causal_attention_forward<S>({heads(q), heads(k), heads(v)}, options, statistics, y.heads());
  AttentionOptions kept = options;
  if (options.mask) kept.mask.data = y.copy(memory_of(options.mask)).data();
  y.records(kept);
  return y.saves(q, k, v, y.var(), statistics, kept)
      .on_backward([](const auto& saved, auto dy, auto dq, auto dk, auto dv) {
        const auto& [q_saved, k_saved, v_saved, y_saved, statistics_saved, options_saved] = saved;
        causal_attention_backward<S>({q_saved.heads(), k_saved.heads(), v_saved.heads()}, options_saved,
                                     {y_saved.heads(), statistics_saved}, dy.heads(),
                                     {dq.heads(), dk.heads(), dv.heads()});
      });
}

#define HANDGRAD_INSTANTIATE(S)                                                                                       \
  template void causal_attention_forward<S>(const AttentionInputs<S>&, const AttentionOptions&, SoftmaxStatistics<S>, \
                                            Heads<S>);                                                                \
  template Var<S> causal_attention<S>(Var<S>, Var<S>, Var<S>, const AttentionOptions&);
HANDGRAD_FOR_ALL_SCALARS(HANDGRAD_INSTANTIATE)
#undef HANDGRAD_INSTANTIATE
#define HANDGRAD_INSTANTIATE(S)                                                                  \
  template void causal_attention_backward<S>(const AttentionInputs<S>&, const AttentionOptions&, \
                                             const AttentionSaved<S>&, Heads<const S>, const AttentionGradients<S>&);
HANDGRAD_FOR_REAL_SCALARS(HANDGRAD_INSTANTIATE)
#undef HANDGRAD_INSTANTIATE

}  // namespace handgrad
