#include "support/reference.h"

#include "handgrad/core/parallel.h"
#include "handgrad/optim/optimizer.h"
#include "support/attention.h"

// Forward passes and gradients against PyTorch's, in double.

namespace handgrad::testing {
namespace {

const Reference& reference() {
  static const Reference values("operations.h5");
  return values;
}

// f(operands) against the y of a case, and every gradient against its d<operand>.
template <class F>
void expect_case(const std::string& path, const std::vector<std::string>& operands, F f, double tolerance = 1e-12) {
  SCOPED_TRACE(path);
  const ThreadScope one(1);
  Tape<double> tape;
  tape.poison_memory();
  std::vector<Var<double>> x;
  for (const std::string& name : operands) x.push_back(tape.variable(reference().tensor(path + "/" + name)));
  const Var<double> y = f(x);
  ASSERT_EQ(y.shape(), reference().shape(path + "/y"));
  expect_close(elements(y), reference().values(path + "/y"), tolerance, "y");
  tape.backward(y, reference().tensor(path + "/dy"));
  for (std::size_t i = 0; i < operands.size(); ++i) {
    expect_close(gradient(x[i]), reference().values(path + "/d" + operands[i]), tolerance, operands[i].c_str());
  }
}

TEST(Reference, attention_in_both_forms) {
  const auto cases = reference().names("attention");
  EXPECT_EQ(cases.size(), 15u);
  for (const std::string& name : cases) {
    const std::string path = "attention/" + name;
    AttentionOptions options;
    options.causal = reference().integers(path + "/causal").at(0) != 0;
    options.scale = reference().number(path + "/scale");
    const bool masked = reference().has(path + "/mask");
    const Mask mask = masked ? reference().mask(path + "/mask") : Mask();
    if (masked) options.mask = mask.view();
    expect_case(path, {"q", "k", "v"}, [&](auto& x) { return explicit_attention(x[0], x[1], x[2], options); });
    expect_case(path, {"q", "k", "v"}, [&](auto& x) { return causal_attention(x[0], x[1], x[2], options); });
    options.query_tile = 2, options.key_tile = 3;
    expect_case(path, {"q", "k", "v"}, [&](auto& x) { return causal_attention(x[0], x[1], x[2], options); });
  }
}

TEST(Reference, rope_in_both_pairings) {
  for (const auto& [name, pairing] : {std::pair{"adjacent", RopePairing::adjacent}, {"half", RopePairing::half}}) {
    const std::string path = std::string("rope/") + name;
    const auto positions = reference().integers(path + "/positions");
    const Shape shape = reference().shape(path + "/x");
    RopeTable<double> table(shape[3], reference().number(path + "/theta"), pairing);
    table.extend(901);
    expect_case(path, {"x"}, [&](auto& x) { return rope(x[0], {positions.data(), shape[0], shape[1]}, table); });
  }
}

TEST(Reference, norms) {
  for (const char* name : {"plain", "small"}) {
    const std::string layer = std::string("layer_norm/") + name, rms = std::string("rms_norm/") + name;
    const double layer_eps = reference().number(layer + "/eps"), rms_eps = reference().number(rms + "/eps");
    expect_case(layer, {"x", "weight", "bias"}, [&](auto& x) { return layer_norm(x[0], x[1], x[2], layer_eps); });
    expect_case(rms, {"x", "weight"}, [&](auto& x) { return rms_norm(x[0], x[1], rms_eps); });
  }
}

TEST(Reference, losses_with_ignored_targets_and_smoothing) {
  for (const char* name : {"plain", "smoothed"}) {
    const std::string path = std::string("cross_entropy/") + name, head = "linear_" + path;
    const auto targets = reference().tokens(path + "/targets");
    LossOptions options{.label_smoothing = reference().number(path + "/smoothing")};
    expect_case(path, {"logits"}, [&](auto& x) { return cross_entropy(x[0], targets, options); });
    for (const Index budget : {0, 1 << 20}) {
      options.logits_budget_bytes = budget;
      options.slab_rows = budget == 0 ? 3 : 0;
      expect_case(head, {"x", "weight"}, [&](auto& x) { return linear_cross_entropy(x[0], x[1], targets, options); });
    }
  }
}

TEST(Reference, elementwise_operations_and_softmax) {
  expect_case("unary/gelu", {"x"}, [](auto& x) { return gelu(x[0]); });
  expect_case("unary/gelu_tanh", {"x"}, [](auto& x) { return gelu_tanh(x[0]); });
  expect_case("unary/silu", {"x"}, [](auto& x) { return silu(x[0]); });
  expect_case("unary/relu", {"x"}, [](auto& x) { return relu(x[0]); });
  expect_case("unary/relu_squared", {"x"}, [](auto& x) { return relu_squared(x[0]); });
  expect_case("unary/softmax", {"x"}, [](auto& x) { return softmax(x[0]); });
  expect_case("unary/log_softmax", {"x"}, [](auto& x) { return log_softmax(x[0]); });
  expect_case("swiglu", {"gate", "up"}, [](auto& x) { return swiglu(x[0], x[1]); });
}

TEST(Reference, linear_and_embedding) {
  expect_case("linear", {"x", "weight", "bias"}, [](auto& x) { return linear(x[0], x[1], x[2]); });
  const auto ids = reference().tokens("embedding/ids");
  expect_case("embedding", {"table"}, [&](auto& x) {
    return embedding(x[0], std::span<const TokenId>(ids), reference().shape("embedding/ids"));
  });
}

TEST(Reference, twenty_updates_of_adamw) {
  const auto& r = reference();
  const ThreadScope one(1);
  const double lambda = r.number("adamw/decay");
  ParameterStore<double> store;
  store.add("weight", r.shape("adamw/weight"));
  store.add("bias", r.shape("adamw/bias"));
  store.allocate();
  store.allocate_gradients();
  const auto put = [](double* to, const std::vector<double>& from, std::size_t begin, Index count) {
    std::copy_n(from.begin() + static_cast<std::ptrdiff_t>(begin), count, to);
  };
  const Parameter &weight = store.parameter(0), &bias = store.parameter(1);
  const Index n = weight.shape.size(), m = bias.shape.size();
  put(store.mutable_values() + weight.offset, r.values("adamw/weight"), 0, n);
  put(store.mutable_values() + bias.offset, r.values("adamw/bias"), 0, m);
  AdamW<double> optimizer(store, {r.number("adamw/beta1"), r.number("adamw/beta2"), r.number("adamw/eps"), lambda});
  const auto rates = r.values("adamw/rates"), weights = r.values("adamw/weights"), biases = r.values("adamw/biases");
  const auto dw = r.values("adamw/weight_gradients"), db = r.values("adamw/bias_gradients");
  ASSERT_EQ(rates.size(), 20u);
  for (std::size_t step = 0; step < rates.size(); ++step) {
    const std::size_t w = step * static_cast<std::size_t>(n), b = step * static_cast<std::size_t>(m);
    put(store.gradients() + weight.offset, dw, w, n);
    put(store.gradients() + bias.offset, db, b, m);
    optimizer.step(store, rates[step], 1.0);
    for (Index i = 0; i < n; ++i) {
      ASSERT_NEAR(store.values()[weight.offset + i], weights[w + static_cast<std::size_t>(i)], 1e-13)
          << "step " << step;
    }
    for (Index i = 0; i < m; ++i) {
      ASSERT_NEAR(store.values()[bias.offset + i], biases[b + static_cast<std::size_t>(i)], 1e-13) << "step " << step;
    }
  }
}

}  // namespace
}  // namespace handgrad::testing
