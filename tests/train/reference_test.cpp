#include "handgrad/config/validate.h"
#include "handgrad/train/batches.h"
#include "handgrad/train/data_source.h"
#include "support/reference_model.h"

// Compares ten steps of the trainer's parts with PyTorch in double: windows of a text, accumulation, dropout, clipping,
// schedule, AdamW. Compared are the loss, rate and norm of every step and all weights after the last.

namespace handgrad::test {
namespace {

std::string text_of(const Reference& reference) {
  std::string text;
  for (const Index token : reference.integers("training/text")) text += static_cast<char>('a' + token);
  return text;
}

void expect_training(const std::string& name, AttentionKind attention) {
  const ThreadScope one(1);
  const Reference reference(name + ".h5");
  Config config = config_of(reference, name);
  config.model.attention = attention;
  const DataSource source = DataSource::from_text(config, text_of(reference));
  config = complete_config(config, source.tokenizer().name(), source.tokenizer().vocab_size());
  TrainingBatches batches(config, source.train());
  CausalLm<double> model(config.model);
  Update<double> update(config, model);
  ParameterStore<double>& store = model.store();
  take_parameters(reference, "parameters", store);
  if (::testing::Test::HasFatalFailure()) return;

  const auto losses = reference.values("training/losses"), rates = reference.values("training/rates");
  const auto norms = reference.values("training/norms");
  ASSERT_EQ(losses.size(), 10u);
  Closeness steps(2e-12), weights(1e-11);
  for (std::size_t i = 0; i < losses.size(); ++i) {
    const auto step = static_cast<Index>(i);
    const LossSum loss = update.make_gradients(model, [&](Index n) { return batches.micro_batch(step, n); });
    const double rate = learning_rate(config, step), norm = update.norm(model);
    update.apply(model, rate, norm);
    steps.expect({loss.mean()}, {losses[i]}, 0.0, fmt::format("loss of step {}", i));
    steps.expect({rate}, {rates[i]}, 0.0, fmt::format("rate of step {}", i));
    steps.expect({norm}, {norms[i]}, 0.0, fmt::format("norm of step {}", i));
  }
  for (const Parameter& p : store.parameters()) {
    const auto expected = reference.values("training/parameters/" + p.name);
    EXPECT_NE(expected, reference.values("parameters/" + p.name)) << p.name << " has learned nothing";
    weights.expect(elements(store.value(p)), expected, 0.0, p.name);
  }
  steps.record("worst_step_error");
  weights.record("worst_weight_error");
}

class TrainingReference : public ::testing::TestWithParam<std::string> {};

TEST_P(TrainingReference, ten_steps) { expect_training(GetParam(), AttentionKind::tiled); }
TEST_P(TrainingReference, ten_steps_with_explicit_attention) {
  expect_training(GetParam(), AttentionKind::explicit_form);
}

INSTANTIATE_TEST_SUITE_P(Models, TrainingReference, ::testing::ValuesIn(reference_models),
                         [](const auto& model) { return model.param; });

}  // namespace
}  // namespace handgrad::test
