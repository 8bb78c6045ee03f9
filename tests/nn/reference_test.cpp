#include "handgrad/config/validate.h"
#include "handgrad/nn/causal_lm.h"
#include "support/reference_model.h"

// Whole small models against PyTorch, in double: logits, loss and the gradient of every parameter.

namespace handgrad::test {
namespace {

void expect_model(const std::string& name, AttentionKind attention) {
  SCOPED_TRACE(name);
  const ThreadScope one(1);
  const Reference reference(name + ".h5");
  Config config = config_of(reference, name);
  config.model.attention = attention;
  config.model.vocab_size = reference.shape("logits")[-1];
  CausalLm<double> model(resolve(config).model);
  ParameterStore<double>& store = model.store();
  store.allocate_gradients();
  take_parameters(reference, "parameters", store);
  if (::testing::Test::HasFatalFailure()) return;

  const auto tokens = reference.tokens("tokens"), targets = reference.tokens("targets");
  const TokenBatch batch{tokens, reference.shape("tokens")[0]};
  Closeness values(1e-13), gradients(1e-13);
  Tape<double> evaluation(false);
  values.expect(elements(model.logits(evaluation, batch)), reference.values("logits"), 0.0, "logits");
  Tape<double> tape;
  const auto loss = model.loss(tape, batch, targets);
  values.expect({loss.item()}, reference.values("loss"), 0.0, "loss");
  tape.backward(loss);
  // Relative to the largest of its tensor; some tensors have no gradient but rounding (the key's bias), so never below
  // a share of the largest of all.
  double largest = 0.0;
  for (const Parameter& p : store.parameters()) {
    largest = std::max(largest, Closeness::largest(reference.values("gradients/" + p.name)));
  }
  for (const Parameter& p : store.parameters()) {
    gradients.expect(elements(store.gradient(p)), reference.values("gradients/" + p.name), 1e-6 * largest, p.name);
  }
  values.record("worst_value_error");
  gradients.record("worst_gradient_error");
}

class ModelReference : public ::testing::TestWithParam<std::string> {};

TEST_P(ModelReference, tiled_attention) { expect_model(GetParam(), AttentionKind::tiled); }
TEST_P(ModelReference, explicit_attention) { expect_model(GetParam(), AttentionKind::explicit_form); }

INSTANTIATE_TEST_SUITE_P(Models, ModelReference, ::testing::ValuesIn(reference_models),
                         [](const auto& model) { return model.param; });

}  // namespace
}  // namespace handgrad::test
