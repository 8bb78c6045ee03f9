#include <limits>

#include "handgrad/ops/ops.h"
#include "handgrad/optim/optimizer.h"
#include "support/examples.h"

// What runs the examples of docs/gradients: the operations themselves, forward and backward, in double.

namespace handgrad::testing {
namespace {

using Value = Var<double>;
struct Named {
  std::string name;
  Shape shape{};  // rank 0: as it is written
};

// Runs f on the named operands; compares y and the operands' gradients, for an upstream gradient dy (1 if there is
// none).
template <class F>
void run(Example& e, const std::vector<Named>& operands, F f) {
  Tape<double> tape;
  std::vector<Value> x;
  for (const Named& o : operands) {
    x.push_back(tape.variable(o.shape.rank() == 0 ? e.tensor(o.name) : e.tensor(o.name, o.shape)));
  }
  const Value y = f(x).keep();
  Tensor<double> dy(y.shape());
  dy.fill(1.0);
  if (e.has("dy")) dy = e.tensor("dy", y.shape());
  tape.backward(y, dy);
  e.expect("y", elements(y));
  for (std::size_t i = 0; i < operands.size(); ++i) e.expect("d" + operands[i].name, gradient(x[i]));
}

template <class F>
Runner unary(F f) {
  return [f](Example& e) { run(e, {{"x"}}, [f](auto x) { return f(x[0]); }); };
}
template <class F>
Runner binary(const char* first, const char* second, F f) {
  return [=](Example& e) { run(e, {{first}, {second}}, [f](auto x) { return f(x[0], x[1]); }); };
}

// exp and softmax as they are written in a textbook, in float, beside the operation.
void softmax_overflow(Example& e) {
  const Tensor<double> x = e.tensor("x");
  std::vector<double> exponentials, naive;
  float total = 0.0f;
  for (const double v : x.span()) total += std::exp(static_cast<float>(v));
  for (const double v : x.span()) {
    exponentials.push_back(static_cast<double>(std::exp(static_cast<float>(v))));
    naive.push_back(static_cast<double>(std::exp(static_cast<float>(v)) / total));
  }
  e.expect("exp", exponentials);
  e.expect("naive", naive);
  Tape<float> tape;
  Tensor<float> narrow(x.shape());
  std::copy(x.span().begin(), x.span().end(), narrow.data());
  const auto y = elements(softmax(tape.variable(narrow)));
  e.expect("y", std::vector<double>(y.begin(), y.end()));
}

LossOptions loss_options(Example& e) {
  LossOptions options;
  options.label_smoothing = e.number("label_smoothing", 0.0);
  return options;
}

void run_cross_entropy(Example& e) {
  const auto targets = e.integers<TokenId>("targets");
  const LossOptions options = loss_options(e);
  run(e, {{"logits", {e.rows("logits"), e.cols("logits")}}},
      [&](auto x) { return cross_entropy(x[0], std::span(targets), options); });
}

void run_linear_cross_entropy(Example& e) {
  const auto targets = e.integers<TokenId>("targets");
  LossOptions options = loss_options(e);
  for (const Index budget : {options.logits_budget_bytes, Index{0}}) {  // logits kept, and computed again
    options.logits_budget_bytes = budget;
    run(e, {{"x", {e.rows("x"), e.cols("x")}}, {"weight"}},
        [&](auto x) { return linear_cross_entropy(x[0], x[1], std::span(targets), options); });
  }
}

// One table as embedding and as head; each use alone, too.
void tied(Example& e) {
  const auto ids = e.integers<TokenId>("ids"), targets = e.integers<TokenId>("targets");
  const auto loss = [&](const Value& read, const Value& head) {
    return linear_cross_entropy(embedding(read, std::span(ids), Shape{static_cast<Index>(ids.size())}), head,
                                std::span(targets));
  };
  run(e, {{"table"}}, [&](auto x) { return loss(x[0], x[0]); });
  for (const bool reading : {true, false}) {
    Tape<double> tape;
    const Value table = tape.variable(e.tensor("table"));
    tape.backward(reading ? loss(table, table.detach()) : loss(table.detach(), table));
    e.expect(reading ? "embedding_part" : "head_part", gradient(table));
  }
}

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

void explicit_attention(Example& e) {
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

struct HeadShapes {
  Shape q, k, v;
};

// Rows are times; the heads of a time stand side by side.
HeadShapes head_shapes(Example& e) {
  const auto heads = static_cast<Index>(e.number("heads", 1.0)),
             kv_heads = static_cast<Index>(e.number("kv_heads", 1.0));
  const auto shape = [&](const char* name, Index n) { return Shape{1, e.rows(name), n, e.cols(name) / n}; };
  return {shape("q", heads), shape("k", kv_heads), shape("v", kv_heads)};
}

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
  causal_attention_forward<double>({q.heads(), k.heads(), v.heads()}, options, row_max.data(), log_sum.data(),
                                   y.heads());
  e.expect("row_max", row_max);
  e.expect("log_sum", log_sum);
  if (!e.has("delta")) return;
  const Tensor<double> dy = e.tensor("dy", y.shape());
  for (Index i = 0; i < y.size(); ++i) delta[static_cast<std::size_t>(i / y.shape()[-1])] += dy[i] * y[i];
  e.expect("delta", delta);
}

// One query of width 1 and value 1, so that keys are scores: what stands in m, l and y after each tile of keys.
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
    causal_attention_forward<double>({std::as_const(q).heads(), keys.heads(), values.heads()}, options, &row_max,
                                     &log_sum, y.heads());
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

// RoPE, then causal attention, on heads of one sequence: what positions and mask do together.
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

// Heads are parts of the packed projection: no copy; their gradients land where they were cut.
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

void run_linear(Example& e) {
  if (e.has("bias")) {
    run(e, {{"x"}, {"weight"}, {"bias"}}, [](auto x) { return linear(x[0], x[1], x[2]); });
  } else {
    run(e, {{"x"}, {"weight"}}, [](auto x) { return linear(x[0], x[1], Value()); });
  }
}

void run_embedding(Example& e) {
  const auto ids = e.integers<TokenId>("ids");
  run(e, {{"table"}}, [&](auto x) { return embedding(x[0], std::span(ids), Shape{static_cast<Index>(ids.size())}); });
}

void run_layer_norm(Example& e) {
  const double eps = e.number("eps", 1e-5);
  run(e, {{"x"}, {"weight"}, {"bias"}}, [eps](auto x) { return layer_norm(x[0], x[1], x[2], eps); });
}

void run_rms_norm(Example& e) {
  const double eps = e.number("eps", 1e-5);
  run(e, {{"x"}, {"weight"}}, [eps](auto x) { return rms_norm(x[0], x[1], eps); });
}

// Heads of one token, a row each, share one weight.
void qk_norm(Example& e) {
  const double eps = e.number("eps", 1e-5);
  run(e, {{"x", {1, 1, e.rows("x"), e.cols("x")}}, {"weight"}}, [eps](auto x) { return rms_norm(x[0], x[1], eps); });
}

void run_dropout(Example& e) {
  DropoutMask mask;
  mask.probability = e.number("probability", 0.0);
  mask.seed = static_cast<std::uint64_t>(e.number("seed", 0.0));
  run(e, {{"x"}}, [&](auto x) { return dropout(x[0], mask); });
  Tape<double> tape(false);
  Tensor<double> ones(Shape{e.cols("x")});
  ones.fill(1.0);
  e.expect("m", elements(dropout(tape.constant(ones), mask)));
}

void run_masked_fill(Example& e) {
  const auto hidden = e.integers<std::uint8_t>("mask");
  const Mask mask(Shape{static_cast<Index>(hidden.size())}, std::span(hidden));
  const double value = e.number("value", 0.0);
  run(e, {{"x"}}, [&](auto x) { return masked_fill(x[0], mask.view(), value); });
}

void clipping(Example& e) {
  const Tensor<double> gradients = e.tensor("g");
  ParameterStore<double> store;
  store.add("weight", gradients.shape());
  store.allocate();
  store.allocate_gradients();
  std::copy(gradients.span().begin(), gradients.span().end(), store.gradients());
  const double norm = gradient_norm(store), factor = clip_factor(norm, e.number("max_norm", 0.0));
  e.expect("norm", {norm});
  e.expect("factor", {factor});
  std::vector<double> clipped;
  for (const double g : gradients.span()) clipped.push_back(factor * g);
  e.expect("clipped", clipped);
}

// A matrix, which decays, and a bias, which does not; a row of gradients and of results for each update.
void adamw(Example& e) {
  ParameterStore<double> store;
  const Index width = e.cols("weight");
  store.add("weight", {1, width});
  store.add("bias", {e.cols("bias")});
  store.allocate();
  store.allocate_gradients();
  const Parameter &weight = store.parameter(0), &bias = store.parameter(1);
  const auto put = [](const Tensor<double>& from, Index row, double* to, Index n) {
    std::copy_n(from.data() + row * n, n, to);
  };
  put(e.tensor("weight"), 0, store.mutable_values() + weight.offset, width);
  put(e.tensor("bias"), 0, store.mutable_values() + bias.offset, bias.shape[0]);
  AdamW<double> optimizer(store, {.beta1 = e.number("beta1", 0.9),
                                  .beta2 = e.number("beta2", 0.99),
                                  .eps = e.number("eps", 1e-8),
                                  .weight_decay = e.number("weight_decay", 0.0)});
  const double lr = e.number("lr", 0.0);
  std::map<std::string, std::vector<double>> after;
  for (Index t = 0; t < e.rows("dweight"); ++t) {
    put(e.tensor("dweight"), t, store.gradients() + weight.offset, width);
    put(e.tensor("dbias"), t, store.gradients() + bias.offset, bias.shape[0]);
    optimizer.step(store, lr, 1.0);
    const auto note = [&](const char* name, const double* from, Index n) {
      after[name].insert(after[name].end(), from, from + n);
    };
    note("m", optimizer.state(0) + weight.offset, width);
    note("v", optimizer.state(1) + weight.offset, width);
    note("weight_after", store.values() + weight.offset, width);
    note("bias_after", store.values() + bias.offset, bias.shape[0]);
  }
  for (const auto& [name, values] : after) e.expect(name, values);
}

}  // namespace

const std::map<std::string, Runner>& example_runners() {
  static const std::map<std::string, Runner> runners = {
      {"chain", unary([](Value x) { return add(mul(x, x), scale(x, 3.0)); })},
      {"softmax", unary([](Value x) { return softmax(x); })},
      {"softmax_overflow", softmax_overflow},
      {"log_softmax", unary([](Value x) { return log_softmax(x); })},
      {"cross_entropy", run_cross_entropy},
      {"linear_cross_entropy", run_linear_cross_entropy},
      {"tied", tied},
      {"scaled_dot_product_attention", explicit_attention},
      {"causal_attention", tiled_attention},
      {"running_maximum", running_maximum},
      {"rope", rope_runner(RopePairing::adjacent)},
      {"rope_half", rope_runner(RopePairing::half)},
      {"rope_difference", rope_difference},
      {"rope_causal", rope_causal},
      {"packing", packing},
      {"linear", run_linear},
      {"embedding", run_embedding},
      {"layer_norm", run_layer_norm},
      {"rms_norm", run_rms_norm},
      {"qk_norm", qk_norm},
      {"gelu", unary([](Value x) { return gelu(x); })},
      {"gelu_tanh", unary([](Value x) { return gelu_tanh(x); })},
      {"silu", unary([](Value x) { return silu(x); })},
      {"relu", unary([](Value x) { return relu(x); })},
      {"relu_squared", unary([](Value x) { return relu_squared(x); })},
      {"swiglu", binary("gate", "up", [](Value g, Value u) { return swiglu(g, u); })},
      {"dropout", run_dropout},
      {"add", binary("a", "b", [](Value a, Value b) { return add(a, b); })},
      {"mul", binary("a", "b", [](Value a, Value b) { return mul(a, b); })},
      {"scale", [](Example& e) { run(e, {{"x"}}, [f = e.number("factor", 1.0)](auto x) { return scale(x[0], f); }); }},
      {"sum", unary([](Value x) { return sum(x); })},
      {"mean", unary([](Value x) { return mean(x); })},
      {"concat", binary("a", "b", [](Value a, Value b) { return concat(a, b, -1); })},
      {"dense", unary([](Value x) { return dense(x.transpose(0, 1)); })},
      {"matmul",
       [](Example& e) {
         run(e, {{"a", {e.rows("a"), e.cols("a")}}, {"b", {e.rows("b"), e.cols("b")}}},
             [f = e.number("factor", 1.0)](auto x) { return matmul(x[0], x[1], f); });
       }},
      {"masked_fill", run_masked_fill},
      {"clipping", clipping},
      {"adamw", adamw},
  };
  return runners;
}

}  // namespace handgrad::testing
