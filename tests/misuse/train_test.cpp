#include "handgrad/config/validate.h"
#include "handgrad/files/file_system.h"
#include "handgrad/ops/relu.h"
#include "handgrad/train/run.h"
#include "handgrad/verify/added_gradient.h"
#include "handgrad/verify/audit.h"
#include "handgrad/verify/gradient_check.h"
#include "handgrad/verify/operand_watch.h"
#include "misuse/refusal.h"
#include "support/gradient_test.h"
#include "support/temporary_folder.h"
#include "support/training.h"

namespace handgrad::misuse {
namespace {

const Covers covers{"train/data_source.h",      "train/evaluate.h",        "train/run.h",
                    "train/trainer.h",          "verify/added_gradient.h", "verify/audit.h",
                    "verify/gradient_check.h",  "observe/health.h",        "observe/nonfinite.h",
                    "verify/operand_watch.h",   "verify/subject.h",        "verify/tolerances.h",
                    "verify/float_gradients.h", "train/update.h",          "train/batches.h"};

TEST(MisuseVerify, gradient_checks) {
  const auto f = [](auto in) { return relu(in[0]); };
  std::vector<Tensor<double>> operands;
  operands.emplace_back(Shape{2}), operands.emplace_back();
  EXPECT_REFUSED(ShapeError, "gradient check: operand 1 is empty", check_gradients(f, operands));
  operands.pop_back();
  EXPECT_REFUSED(RangeError, "gradient check: there are 0 operands, got operand 0",
                 check_gradients(f, std::span<const Tensor<double>>{}));
  EXPECT_REFUSED(RangeError, "there are 1 operands, got operand 3",
                 check_gradients([](auto in) { return relu(in[3]); }, operands));
  EXPECT_REFUSED(RangeError, "the number of entries must be 1 or more, got -2",
                 check_gradients(f, operands, {.entries = -2}));
  EXPECT_REFUSED(Error, "value: an empty handle was used",
                 check_gradients([](auto in) { return decltype(relu(in[0]))(); }, operands));
  GradientReport nothing;
  nothing.compute_errors();
  EXPECT_TRUE(nothing.passed());
  EXPECT_EQ(nothing.worst(5), "");
  ParameterStore<double> store;
  store.add("w", {2});
  store.allocate();
  EXPECT_REFUSED(Error, "added gradient: the store has no gradients", verify::AddedGradient<double>(store, 1));
}

TEST(MisuseVerify, stores_to_compare) {
  ParameterStore<float> found;
  ParameterStore<double> exact;
  const auto words = "two stores of the same layout, with gradients, are needed";
  EXPECT_EQ(verify::largest_gradient(exact), 0.0);
  EXPECT_REFUSED(Error, words, verify::float_gradient_errors(found, exact));
  found.add("w", {2}), exact.add("w", {300});
  found.allocate(), exact.allocate();
  EXPECT_EQ(verify::largest_gradient(exact), 0.0);
  found.allocate_gradients(), exact.allocate_gradients();
  EXPECT_REFUSED(Error, words, verify::float_gradient_errors(found, exact));
}

TEST(MisuseVerify, evaluations) {
  const std::vector<Tensor<double>> operands = test::random_operands({{2}}, 1);
  const auto relu_of_first = [](auto in) { return relu(in[0]); };
  const verify::SubjectFactory<double> make = [&] {
    return std::make_unique<OperandFunction<double, decltype(relu_of_first)>>(relu_of_first, operands, 1);
  };
  int calls = 0;
  verify::for_each_evaluation<double>(make, 0, 3, [&](Index, verify::Subject<double>&) { ++calls; });
  EXPECT_EQ(calls, 3);  // fewer than one worker count as one
  verify::for_each_evaluation<double>(make, 2, -1, [&](Index, verify::Subject<double>&) { ++calls; });
  EXPECT_EQ(calls, 3);
}

TEST(MisuseVerify, watches) {
  ParameterStore<float> store;
  store.add("w", {2});
  EXPECT_REFUSED(Error, "operand watch: a store with memory is needed", verify::OperandWatch<float>(store));
  EXPECT_REFUSED(Error, "health: a store with memory is needed", HealthMonitor<float>(store));
  store.allocate();
  EXPECT_REFUSED(Error, "health: a store with gradients is needed", HealthMonitor<float>(store).report());
  EXPECT_EQ(first_not_finite(View<const float>{}), -1);
  EXPECT_EQ(NonFiniteTracer<float>().origin(), nullptr);
}

TEST(MisuseTrain, updates_and_batches) {
  Config config = test::tiny_config();
  config.model.vocab_size = 5;
  config = resolve(config);
  const std::vector<TokenId> short_text(static_cast<std::size_t>(config.model.context), 1);
  EXPECT_REFUSED(DataError, "", TrainingBatches(config, short_text));
  const std::vector<TokenId> text(100, 1);
  TrainingBatches batches(config, text);
  EXPECT_REFUSED(RangeError, "", batches.micro_batch(-1, 0));
  EXPECT_REFUSED(RangeError, "", batches.starts(-1, 0));
  CausalLm<float> model(config.model);
  Update<float> update(config, model);
  EXPECT_REFUSED(ShapeError, "model: 0 tokens", update.make_gradients(model, [](Index) { return MicroBatch{}; }));
  CausalLm<float> other(config.model);
  EXPECT_REFUSED(Error, "gradient norm: the store has no gradients", update.norm(other));
  EXPECT_REFUSED(Error, "optimizer: the store has no gradients", update.apply(other, 0.1, 1.0));
  EXPECT_REFUSED(RangeError, "learning_rate: the step must be 0 or more, got -1", learning_rate(config, -1));
}

TEST(MisuseVerify, audits) {
  Config config = test::tiny_config();
  config.model.vocab_size = 5;
  const ModelConfig model = resolve(config).model;
  const std::vector<TokenId> four{0, 1, 2, 3}, three{0, 1, 2}, large{0, 1, 2, 9};
  const auto words = "audit: a batch of whole sequences with one target per token is needed";
  EXPECT_REFUSED(ShapeError, words, audit_model(model, {}, {}, 1));
  EXPECT_REFUSED(ShapeError, words, audit_model(model, four, four, 0));
  EXPECT_REFUSED(ShapeError, words, audit_model(model, four, three, 1));
  EXPECT_REFUSED(ShapeError, words, audit_model(model, four, four, 3));
  EXPECT_REFUSED(RangeError, "9", audit_model(model, large, four, 1));
  EXPECT_REFUSED(RangeError, "entries and directions must be 0 or more, got -1 and 8",
                 audit_model(model, four, four, 1, {.entries = -1}));
  EXPECT_REFUSED(ConfigError, "model.", audit_model({}, four, four, 1));
}

TEST(MisuseTrain, data_and_trainers) {
  const Config config = test::tiny_config();
  const DataSource nothing;
  EXPECT_REFUSED(DataError, "data source: it is empty", nothing.tokenizer());
  EXPECT_TRUE(nothing.train().empty());
  EXPECT_REFUSED(DataError, "data source: it is empty", Trainer(config, nothing));
  EXPECT_REFUSED(DataError, "", DataSource::from_text(config, ""));
  EXPECT_REFUSED(DataError, "", DataSource::load(config));
  Config broken = config;
  broken.model.n_heads = 0;
  EXPECT_REFUSED(ConfigError, "model.n_heads", Trainer(broken, test::tiny_source(config)));
  EXPECT_REFUSED(CheckpointError, "/no/such", Trainer::resume("/no/such", test::tiny_source(config)));
  Trainer trainer(config, test::tiny_source(config));
  EXPECT_REFUSED(DataError, "", trainer.save("/no/such/folder/file.h5"));
  const Trainer taken = std::move(trainer);
  EXPECT_REFUSED(Error, "trainer: it has been moved from", trainer.step());  // NOLINT: use after a move
  EXPECT_REFUSED(Error, "trainer: it has been moved from", trainer.evaluate());
  EXPECT_REFUSED(Error, "trainer: it has been moved from", trainer.save("x.h5"));
  EXPECT_REFUSED(Error, "trainer: it has been moved from", trainer.optimizer());
  EXPECT_REFUSED(DataError, "", handgrad::Run(Trainer(config, test::tiny_source(config)), "/dev/null/run"));
  EXPECT_REFUSED(DataError, "", clear_run_folder(posix_files(), "/dev/null/run"));
}

TEST(MisuseTrain, evaluations) {
  Config config = test::tiny_config();
  config.model.vocab_size = 256;
  const CausalLm<float> model(resolve(config).model);
  const ByteTokenizer bytes;
  const std::vector<TokenId> tokens(30, 1), one(1, 1);
  const std::vector<Index> starts{0}, late{25};
  Tape<float> tape(false);
  EXPECT_REFUSED(DataError, "must have at least two tokens, got 0", evaluate_all(model, bytes, {}, 1));
  EXPECT_REFUSED(DataError, "must have at least two tokens, got 1", evaluate_all(model, bytes, one, 1));
  EXPECT_REFUSED(RangeError, "evaluation: the batch must be 1 or more, got 0", evaluate_all(model, bytes, tokens, 0));
  EXPECT_REFUSED(RangeError, "got -3", evaluate_windows(model, bytes, tokens, starts, -3, tape));
  EXPECT_REFUSED(RangeError, "", evaluate_windows(model, bytes, tokens, late, 1, tape));
  EXPECT_EQ(evaluate_windows(model, bytes, tokens, {}, 1, tape).tokens, 0);
}

}  // namespace
}  // namespace handgrad::misuse
