#include "support/reference.h"

#include "handgrad/config/validate.h"
#include "handgrad/core/parallel.h"
#include "handgrad/nn/causal_lm.h"
#include "support/values.h"

// Whole small models against PyTorch's, in double: logits, loss and the gradient of every parameter.

namespace handgrad::testing {
namespace {

ModelConfig small(bool gpt) {
  ModelConfig m;
  m.n_layers = 2, m.n_heads = 4, m.d_model = 16, m.d_ff = 24, m.context = 8, m.vocab_size = 11;
  m.bias = m.tie_embeddings = gpt;
  if (gpt) {
    m.norm = NormKind::layer, m.feed_forward = FeedForwardKind::gelu, m.position = PositionKind::learned;
  } else {
    m.n_kv_heads = 2;
  }
  return m;
}

// Tolerance of a gradient entry: relative to the largest of its tensor; some tensors have no gradient but rounding
// (the key's bias), so never below a share of the largest of all.
double allowed_error(const std::vector<double>& exact, double largest_of_all) {
  double largest = 1e-6 * largest_of_all;
  for (const double g : exact) largest = std::max(largest, std::abs(g));
  return 1e-11 * largest;
}

void expect_model(const char* file, const ModelConfig& shape) {
  SCOPED_TRACE(file);
  const ThreadScope one(1);
  const Reference reference(file);
  Config config;
  config.model = shape;
  CausalLm<double> model(resolve(config).model);
  ParameterStore<double>& store = model.store();
  store.allocate_gradients();
  const std::string values = "parameters/", gradients = "gradients/";
  double largest = 0.0;
  Index count = 0;
  for (const Parameter& p : store.parameters()) {
    ASSERT_TRUE(reference.has(values + p.name)) << p.name;
    ASSERT_EQ(reference.shape(values + p.name), p.shape) << p.name;
    const auto from = reference.values(values + p.name);
    std::copy(from.begin(), from.end(), store.mutable_values() + p.offset);
    for (const double g : reference.values(gradients + p.name)) largest = std::max(largest, std::abs(g));
    count += p.shape.size();
  }
  EXPECT_EQ(count, reference.scalars("parameters")) << "the reference has parameters that the model lacks";

  const auto tokens = reference.tokens("tokens"), targets = reference.tokens("targets");
  Tape<double> evaluation(false);
  expect_close(elements(model.logits(evaluation, {tokens, 2})), reference.values("logits"), 1e-12, "logits");
  Tape<double> tape;
  const auto loss = model.loss(tape, {tokens, 2}, targets);
  EXPECT_NEAR(loss.item(), reference.number("loss"), 1e-12);
  tape.backward(loss);
  for (const Parameter& p : store.parameters()) {
    const auto exact = reference.values(gradients + p.name);
    expect_near(elements(store.gradient(p)), exact, allowed_error(exact, largest), p.name.c_str());
  }
}

TEST(ModelReference, gpt_shape) { expect_model("gpt.h5", small(true)); }

TEST(ModelReference, gpt_shape_with_sinusoidal_positions_and_gelu_tanh) {
  ModelConfig m = small(true);
  m.position = PositionKind::sinusoidal, m.feed_forward = FeedForwardKind::gelu_tanh;
  expect_model("gpt_tanh_sinusoidal.h5", m);
}

TEST(ModelReference, llama_shape) { expect_model("llama.h5", small(false)); }

TEST(ModelReference, llama_shape_with_qk_norm_and_half_pairing) {
  ModelConfig m = small(false);
  m.qk_norm = true, m.rope_pairing = RopePairing::half;
  expect_model("llama_qk_norm_half.h5", m);
}

TEST(ModelReference, explicit_attention_in_both_shapes) {
  for (const bool gpt : {true, false}) {
    ModelConfig m = small(gpt);
    m.attention = AttentionKind::explicit_form;
    expect_model(gpt ? "gpt.h5" : "llama.h5", m);
  }
}

}  // namespace
}  // namespace handgrad::testing
