#include <limits>

#include "docs/example_run.h"
#include "handgrad/optim/optimizer.h"

// The operations that run the examples of docs/gradients, forward and backward, in double.

namespace handgrad::test {
namespace {

// exp and softmax without subtracting the maximum, in float, beside the operation.
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
  for (const Index budget : {options.logits_budget_bytes, Index{0}}) {  // logits stored, and recomputed
    options.logits_budget_bytes = budget;
    run(e, {{"x", {e.rows("x"), e.cols("x")}}, {"weight"}},
        [&](auto x) { return linear_cross_entropy(x[0], x[1], std::span(targets), options); });
  }
}

// One table as embedding and as head, and each use alone.
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
    note("m", optimizer.state(0).data() + weight.offset, width);
    note("v", optimizer.state(1).data() + weight.offset, width);
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
      {"scaled_dot_product_attention", run_explicit_attention},
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
      {"contiguous", unary([](Value x) { return contiguous(x.transpose(0, 1)); })},
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

}  // namespace handgrad::test
