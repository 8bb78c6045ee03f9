#include "docs/example_run.h"

namespace handgrad::test {

namespace {

AttentionOptions attention_options(Example& e, Mask& mask) {
  AttentionOptions options;
  options.causal = e.number("causal", 0.0) != 0.0;
  if (e.has("mask")) {
    const auto allowed = e.integers<std::uint8_t>("mask");
    mask = Mask(Shape{e.rows("mask"), e.cols("mask")}, std::span(allowed));
    options.mask = mask.view();
  }
  return options;
}

}  // namespace

void run_explicit_attention(Example& e) {
  Mask mask;
  const AttentionOptions options = attention_options(e, mask);
  const auto matrix = [&](const char* name) { return Named{name, {e.rows(name), e.cols(name)}}; };
  run(e, {matrix("q"), matrix("k"), matrix("v")},
      [&](auto x) { return scaled_dot_product_attention(x[0], x[1], x[2], options); });
  // With the identity for v, the output is the matrix of probabilities itself.
  Tape<double> tape(false);
  Tensor<double> one(Shape{e.rows("k"), e.rows("k")});
  for (Index i = 0; i < e.rows("k"); ++i) one[i * e.rows("k") + i] = 1.0;
  const Value p =
      scaled_dot_product_attention(tape.constant(e.tensor("q", matrix("q").shape)),
                                   tape.constant(e.tensor("k", matrix("k").shape)), tape.constant(one), options);
  e.expect("p", elements(p));
}

namespace {

struct HeadShapes {
  Shape q, k, v;
};

// Rows are times; the heads of one time are adjacent.
HeadShapes head_shapes(Example& e) {
  const auto heads = static_cast<Index>(e.number("heads", 1.0)),
             kv_heads = static_cast<Index>(e.number("kv_heads", 1.0));
  const auto shape = [&](const char* name, Index n) { return Shape{1, e.rows(name), n, e.cols(name) / n}; };
  return {shape("q", heads), shape("k", kv_heads), shape("v", kv_heads)};
}

}  // namespace

void tiled_attention(Example& e) {
  Mask mask;
  AttentionOptions options = attention_options(e, mask);
  options.query_tile = static_cast<Index>(e.number("query_tile", 128.0));
  options.key_tile = static_cast<Index>(e.number("key_tile", 128.0));
  const HeadShapes shapes = head_shapes(e);
  run(e, {{"q", shapes.q}, {"k", shapes.k}, {"v", shapes.v}},
      [&](auto x) { return causal_attention(x[0], x[1], x[2], options); });
  const Tensor<double> q = e.tensor("q", shapes.q), k = e.tensor("k", shapes.k), v = e.tensor("v", shapes.v);
  Tensor<double> y(shapes.q.with(-1, shapes.v[-1]));
  const Index rows = y.size() / y.shape()[-1];
  std::vector<double> row_max(static_cast<std::size_t>(rows)), log_sum(row_max), delta(row_max);
  causal_attention_forward<double>({q.heads(), k.heads(), v.heads()}, options, {row_max, log_sum}, y.heads());
  e.expect("row_max", row_max);
  e.expect("log_sum", log_sum);
  if (!e.has("delta")) return;
  const Tensor<double> dy = e.tensor("dy", y.shape());
  for (Index i = 0; i < y.size(); ++i) delta[static_cast<std::size_t>(i / y.shape()[-1])] += dy[i] * y[i];
  e.expect("delta", delta);
}

// One query of width 1 and value 1, so that keys are scores: m, l and y after each tile of keys.
void running_maximum(Example& e) {
  const Index tiles = e.rows("s"), width = e.cols("s");
  const Tensor<double> s = e.tensor("s"), v = e.tensor("v");
  Tensor<double> q(Shape{1, 1, 1, 1}, {1.0});
  AttentionOptions options;
  options.causal = false;
  options.scale = 1.0;
  options.key_tile = width;
  std::vector<double> m, l, outputs;
  for (Index seen = 1; seen <= tiles; ++seen) {
    const Shape shape{1, seen * width, 1, 1};
    const Tensor<double> keys(shape, s.span().first(static_cast<std::size_t>(seen * width)));
    const Tensor<double> values(shape, v.span().first(static_cast<std::size_t>(seen * width)));
    Tensor<double> y(Shape{1, 1, 1, 1});
    double row_max = 0.0, log_sum = 0.0;
    causal_attention_forward<double>({std::as_const(q).heads(), keys.heads(), values.heads()}, options,
                                     {std::span(&row_max, 1), std::span(&log_sum, 1)}, y.heads());
    m.push_back(row_max);
    l.push_back(std::exp(log_sum));
    outputs.push_back(y[0]);
  }
  e.expect("m", m);
  e.expect("l", l);
  e.expect("y", outputs);
}

Runner rope_runner(RopePairing pairing) {
  return [pairing](Example& e) {
    const auto positions = e.integers<Index>("positions");
    RopeTable<double> table(e.cols("x"), e.number("theta", 10000.0), pairing);
    table.extend(*std::max_element(positions.begin(), positions.end()) + 1);
    run(e, {{"x", {1, e.rows("x"), 1, e.cols("x")}}}, [&](auto x) {
      return rope(x[0], PositionsRef{positions.data(), 1, static_cast<Index>(positions.size())}, table);
    });
  };
}

// The score of q at the first position and k at the second of each row.
void rope_difference(Example& e) {
  const Index width = e.cols("q");
  const auto positions = e.integers<Index>("positions");
  RopeTable<double> table(width, e.number("theta", 10000.0), RopePairing::adjacent);
  table.extend(*std::max_element(positions.begin(), positions.end()) + 1);
  std::vector<double> scores;
  for (std::size_t i = 0; i < positions.size(); i += 2) {
    Tape<double> tape(false);
    const Shape shape{1, 1, 1, width};
    const Value q = rope(tape.constant(e.tensor("q", shape)), PositionsRef{&positions[i], 1, 1}, table);
    const Value k = rope(tape.constant(e.tensor("k", shape)), PositionsRef{&positions[i + 1], 1, 1}, table);
    scores.push_back(sum(mul(q, k)).item());
  }
  e.expect("score", scores);
}

// RoPE, then causal attention, on heads of one sequence: the effect of positions and mask together.
void rope_causal(Example& e) {
  const auto q_positions = e.integers<Index>("q_positions"), k_positions = e.integers<Index>("k_positions");
  RopeTable<double> table(e.cols("q"), e.number("theta", 10000.0), RopePairing::adjacent);
  table.extend(std::max(*std::max_element(q_positions.begin(), q_positions.end()),
                        *std::max_element(k_positions.begin(), k_positions.end())) +
               1);
  const auto turn = [&](const Value& x, const std::vector<Index>& positions) {
    return rope(x, PositionsRef{positions.data(), 1, static_cast<Index>(positions.size())}, table);
  };
  const auto attend = [&](const Value& q, const Value& k, const Value& v) {
    return causal_attention(turn(q, q_positions), turn(k, k_positions), v);
  };
  const auto head = [&](const char* name) { return Shape{1, e.rows(name), 1, e.cols(name)}; };
  run(e, {{"q", head("q")}, {"k", head("k")}, {"v", head("v")}}, [&](auto x) { return attend(x[0], x[1], x[2]); });
  // With the identity for v, the output is the matrix of probabilities itself.
  const Index keys = e.rows("k");
  Tape<double> tape(false);
  Tensor<double> one(Shape{1, keys, 1, keys});
  for (Index i = 0; i < keys; ++i) one[i * keys + i] = 1.0;
  e.expect("p", elements(attend(tape.constant(e.tensor("q", head("q"))), tape.constant(e.tensor("k", head("k"))),
                                tape.constant(one))));
}

// Heads are parts of the packed projection: without a copy; their gradients are added to its gradient.
void packing(Example& e) {
  const auto heads = static_cast<Index>(e.number("heads", 1.0)),
             kv_heads = static_cast<Index>(e.number("kv_heads", 1.0));
  Tape<double> tape;
  const Value packed = tape.variable(e.tensor("packed", {1, 1, e.cols("packed")}));
  const Index width = e.cols("packed") / (heads + 2 * kv_heads);
  Value total;
  const auto part = [&](const std::string& name, Index first, Index count) {
    const Value head = packed.slice(-1, first * width, count * width).split_last(count);
    e.expect(name, elements(head));
    const Value weighed = sum(mul(head, tape.constant(e.tensor("d" + name, head.shape()))));
    total = total ? add(total, weighed) : weighed;
  };
  part("q", 0, heads);
  part("k", heads, kv_heads);
  part("v", heads + kv_heads, kv_heads);
  tape.backward(total);
  e.expect("dpacked", gradient(packed));
}

}  // namespace handgrad::test
