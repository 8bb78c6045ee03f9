#include "handgrad/observe/health.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/lanes.h"
#include "handgrad/core/errors.h"
#include "handgrad/core/gemm.h"
#include "handgrad/core/parallel.h"
#include "ops/attention_visibility.h"

namespace handgrad {
namespace {

using gemm::multiply;
using gemm::Store;
using gemm::Transpose;

constexpr Index parameter_tile = 65536, attention_tile = 128, unit_tile = 64;
constexpr double dead = 1e-6;
constexpr std::string_view down_weight = "/feed_forward/down/weight";

// A NaN propagates.
template <class R>
R larger(R a, R b) {
  return a < b || b != b ? b : a;
}

// "blocks/3" of "blocks/3/attention/qkv/weight", "embedding" of "embedding/weight".
std::string part_name(std::string_view path) {
  std::size_t end = path.find('/');
  if (path.starts_with("blocks/")) end = path.find('/', end + 1);
  return std::string(path.substr(0, end));
}

// Softmax over the keys of one query, tile by tile: the largest score m, l = sum e^(s - m) and
// w = sum e^(s - m) (s - m). With p = e^(s - m) / l, -sum p ln p = ln l - w / l.
template <class S>
struct RowSoftmax {
  S m = -std::numeric_limits<S>::infinity();
  double l = 0.0, w = 0.0;

  // Adds n scores, and overwrites them; `memory` holds n elements.
  void add(S* s, Index n, S* memory) {
    const S now = larger(m, lane_max<S>(n, [=](Index c) { return s[c]; }));
    if (l > 0.0) {
      const double lower = static_cast<double>(m) - static_cast<double>(now), shrink = std::exp(lower);
      w = shrink * (w + l * lower);
      l *= shrink;
    }
    m = now;
    for (Index c = 0; c < n; ++c) s[c] -= now;
    for (Index c = 0; c < n; ++c) memory[c] = exp_of(s[c]);
    // The term of a score of -infinity is 0; 0 times infinity would be NaN.
    for (Index c = 0; c < n; ++c) s[c] = memory[c] == S(0) ? S(0) : memory[c] * s[c];
    l += lane_sum<double>(n, [=](Index c) { return static_cast<double>(memory[c]); });
    w += lane_sum<double>(n, [=](Index c) { return static_cast<double>(s[c]); });
  }
  double entropy() const { return std::log(l) - w / l; }
};

// The attention of one operation, as observed.
template <class S>
struct ObservedAttention {
  Heads<const S> q, k;
  double scale;
  Visibility visibility;
};

// Queries [q0, q0 + rows) of head h of sequence b, with all keys that they see. Tiled attention does not store scores,
// so they are recomputed in tiles. The entropy of a query that sees no key is 0.
template <class S>
ScoreStatistics statistics_of_queries(const ObservedAttention<S>& in, Index b, Index h, Index q0) {
  const Rows<const S> q = in.q.head(b, h), k = in.k.head(b, h / (in.q.heads / in.k.heads));
  const Index rows = std::min(attention_tile, q.rows - q0), end = in.visibility.keys_end(q0 + rows, k.rows);
  Buffer<S> s(rows * attention_tile), memory(attention_tile);
  std::vector<RowSoftmax<S>> softmax(rows);
  for (Index k0 = 0; k0 < end; k0 += attention_tile) {
    const ScoreTile tile{b, h, q0, rows, k0, std::min(attention_tile, end - k0)};
    multiply<S>({q.slice(q0, rows)}, {k.slice(k0, tile.cols), Transpose::yes}, static_cast<S>(in.scale), Store::assign,
                {s.data(), rows, tile.cols, tile.cols});
    for (Index r = 0; r < rows; ++r) {
      S* scores = s.data() + r * tile.cols;
      Index visible = in.visibility.causal_count(tile, r);
      if (in.visibility.masked()) {
        const Index candidates = std::exchange(visible, 0);
        for (Index c = 0; c < candidates; ++c) {
          if (in.visibility.sees(tile, r, c)) scores[visible++] = scores[c];
        }
      }
      if (visible > 0) softmax[r].add(scores, visible, memory.data());
    }
  }
  ScoreStatistics found;
  for (const RowSoftmax<S>& row : softmax) {
    found.largest = larger(found.largest, static_cast<double>(row.m));
    if (row.l != 0.0) found.entropy += row.entropy();
    ++found.rows;
  }
  return found;
}

// The scores s and probabilities p of one head, as stored by explicit attention; a hidden score is -infinity.
template <class S>
ScoreStatistics statistics_of_matrix(Rows<const S> s, Rows<const S> p) {
  ScoreStatistics found;
  for (Index r = 0; r < s.rows; ++r) {
    const S *score = s.row(r), *share = p.row(r);
    const S most = lane_max<S>(s.cols, [=](Index c) { return score[c]; });
    found.largest = larger(found.largest, static_cast<double>(most));
    found.entropy += lane_sum<double>(p.cols, [=](Index c) {
      const double x = static_cast<double>(share[c]);
      return x > 0.0 ? -x * std::log(x) : x;  // 0, or NaN
    });
    ++found.rows;
  }
  return found;
}

// Adds statistics_of(unit) for every unit, in order.
template <class F>
void add_statistics(Index units, ScoreStatistics& to, F statistics_of) {
  std::vector<ScoreStatistics> found(units);
  parallel_tiles(units, [&](Index unit) { found[unit] = statistics_of(unit); });
  for (const ScoreStatistics& s : found) {
    to.largest = larger(to.largest, s.largest);
    to.entropy += s.entropy;
    to.rows += s.rows;
  }
}

template <class S>
void measure_attention(Heads<const S> q, Heads<const S> k, const AttentionOptions& options, ScoreStatistics& to) {
  const Index tiles = (q.time + attention_tile - 1) / attention_tile;
  const ObservedAttention<S> in{q, k, attention_scale(options, q.width),
                                Visibility(options, {q.batch, q.heads, q.time, k.time})};
  add_statistics(q.batch * q.heads * tiles, to, [&](Index unit) {
    const Index head = unit / tiles;
    return statistics_of_queries(in, head / q.heads, head % q.heads, unit % tiles * attention_tile);
  });
}

template <class S>
void measure_matrices(View<const S> scores, View<const S> probabilities, ScoreStatistics& to) {
  const Rows<const S> s = scores.rows(), p = probabilities.rows();
  const Index queries = scores.shape[-2];
  add_statistics(s.rows / queries, to, [&](Index head) {
    return statistics_of_matrix(s.slice(head * queries, queries), p.slice(head * queries, queries));
  });
}

}  // namespace

std::vector<std::pair<std::string, double>> HealthReport::figures() const {
  std::vector<std::pair<std::string, double>> all;
  for (const PartHealth& part : parts) {
    all.emplace_back(part.name + "/grad_norm", part.grad_norm);
    all.emplace_back(part.name + "/update_ratio", part.update_ratio);
    if (!part.block) continue;
    all.emplace_back(part.name + "/attention_logit_max", part.block->attention_logit_max);
    all.emplace_back(part.name + "/attention_entropy", part.block->attention_entropy);
    all.emplace_back(part.name + "/dead_units", part.block->dead_units);
  }
  return all;
}

template <class S>
HealthMonitor<S>::HealthMonitor(const ParameterStore<S>& store) : store_(store), before_(store.flat_size()) {
  if (!store.allocated()) throw Error("health: a store with memory is needed; call allocate() first");
  for (const Parameter& p : store.parameters()) {
    const std::string name = part_name(p.name);
    if (parts_.empty() || parts_.back().name != name) parts_.push_back({name, nullptr, {}, {}});
    if (p.name.ends_with(down_weight)) parts_.back().down = store.values() + p.offset;
    for (Index begin = 0; begin < p.shape.size(); begin += parameter_tile) {
      const Index end = std::min(begin + parameter_tile, p.shape.size());
      tiles_.push_back({p.offset + begin, p.offset + end, parts_.size() - 1});
    }
  }
  const S* values = store.values();
  parallel_ranges(store.flat_size(), elementwise_tile,
                  [&](Index begin, Index end) { std::copy(values + begin, values + end, before_.data() + begin); });
}

template <class S>
typename HealthMonitor<S>::Part* HealthMonitor<S>::part_of(std::string_view scope, std::string_view layer) {
  const auto found = std::find_if(parts_.begin(), parts_.end(), [&](const Part& part) {
    return scope.starts_with(part.name) && scope.substr(part.name.size()) == layer;
  });
  return found == parts_.end() ? nullptr : &*found;
}

template <class S>
void HealthMonitor<S>::after_forward(Graph<S>& graph, int id) {
  const Node<S>& node = graph.node(id);
  if (node.inputs.empty()) return;
  const std::string_view operation = node.operation;
  const std::string& scope = graph.scope_of(id);
  if (const AttentionOptions* options = graph.template attribute<AttentionOptions>(id)) {
    Part* part = part_of(scope, "/attention");
    const View<const S> q = graph.value_of(node.inputs[0]), k = graph.value_of(node.inputs[1]);
    if (part) measure_attention(q.heads(), k.heads(), *options, part->scores);
  } else if (operation == "softmax") {
    Part* part = part_of(scope, "/attention");
    const View<const S> probabilities{graph.value(id), node.shape, contiguous_strides(node.shape)};
    if (part) measure_matrices(graph.value_of(node.inputs[0]), probabilities, part->scores);
  } else if (operation == "linear") {
    Part* part = part_of(scope, "/feed_forward");
    if (part && graph.value(node.inputs[1].id) == part->down) measure_units(*part, graph.value_of(node.inputs[0]));
  }
}

// A unit is alive if one of its values is not zero. NaN counts as alive.
template <class S>
void HealthMonitor<S>::measure_units(Part& part, View<const S> units) {
  const Rows<const S> h = units.rows();
  part.alive.resize(h.cols, 0);
  unsigned char* alive = part.alive.data();
  parallel_ranges(h.cols, unit_tile, [&](Index begin, Index end) {
    for (Index r = 0; r < h.rows; ++r) {
      const S* row = h.row(r);
      for (Index c = begin; c < end; ++c) alive[c] |= !(std::abs(row[c]) <= static_cast<S>(dead));
    }
  });
}

// The L2 norm of element(i) over the parameters of each part.
template <class S>
template <class F>
std::vector<double> HealthMonitor<S>::norms(F element) const {
  std::vector<double> partial(tiles_.size()), sums(parts_.size());
  parallel_tiles(std::ssize(tiles_), [&](Index i) {
    const Tile& tile = tiles_[i];
    partial[i] = lane_sum<double>(tile.end - tile.begin, [&](Index at) {
      const double x = element(tile.begin + at);
      return x * x;
    });
  });
  for (std::size_t i = 0; i < tiles_.size(); ++i) sums[tiles_[i].part] += partial[i];
  for (double& sum : sums) sum = std::sqrt(sum);
  return sums;
}

template <class S>
HealthReport HealthMonitor<S>::report() const {
  if (!store_.has_gradients()) throw Error("health: a store with gradients is needed; call allocate_gradients() first");
  const S *gradient = store_.gradients(), *before = before_.data(), *now = store_.values();
  const auto gradients = norms([=](Index i) { return static_cast<double>(gradient[i]); });
  const auto weights = norms([=](Index i) { return static_cast<double>(before[i]); });
  const auto moves = norms([=](Index i) { return static_cast<double>(now[i]) - static_cast<double>(before[i]); });
  HealthReport report;
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    const Part& part = parts_[i];
    PartHealth health{part.name, gradients[i], moves[i] == 0.0 ? 0.0 : moves[i] / weights[i], {}};
    if (part.down) {
      const auto units = static_cast<double>(part.alive.size());
      const auto idle = static_cast<double>(std::count(part.alive.begin(), part.alive.end(), 0));
      health.block = {part.scores.largest, part.scores.entropy / static_cast<double>(part.scores.rows), idle / units};
    }
    report.parts.push_back(std::move(health));
  }
  return report;
}

template class HealthMonitor<float>;
template class HealthMonitor<double>;

}  // namespace handgrad
