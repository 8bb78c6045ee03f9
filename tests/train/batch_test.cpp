#include <gtest/gtest.h>

#include <cmath>

#include "handgrad/config/split.h"
#include "handgrad/core/parallel.h"
#include "handgrad/generate/generator.h"
#include "support/temporary_folder.h"
#include "support/training.h"

// The bits of an update depend neither on its division into micro-batches of whole blocks nor on the number of threads.

namespace handgrad {
namespace {

using test::Logged;
using test::state_of;
using test::tiny_config;
using test::tiny_source;

// A block of whole sequences has 256 tokens, which is two sequences here. The smallest micro-batch is one block.
Config wide_config() {
  Config config = tiny_config();
  config.model.context = 128, config.model.n_layers = 2, config.model.dropout = 0.1;
  config.train.steps = 4, config.train.batch_size = 8;
  config.optimizer.grad_clip = 0.5;
  return config;
}

struct Result {
  std::vector<Logged> rows;
  std::string state;
  double validation;
};

Result train_split(Config config, Index batch_size, Index accumulation, int threads) {
  const ThreadScope scope(threads);
  config.train.batch_size = batch_size, config.train.accumulation = accumulation;
  Trainer trainer(config, tiny_source(config, 6000));
  const auto rows = test::train_to(trainer, config.train.steps);
  return {rows, state_of(trainer), trainer.evaluate().validation.loss};
}

void expect_any_split_to_be_the_same(const Config& config) {
  const Result whole = train_split(config, 8, 1, 1);
  for (const auto& [batch, accumulation, threads] : {std::tuple{4, 2, 1}, {2, 4, 1}, {8, 1, 2}, {2, 4, 3}}) {
    SCOPED_TRACE(testing::Message() << batch << " x " << accumulation << ", " << threads << " threads");
    const Result split = train_split(config, batch, accumulation, threads);
    EXPECT_EQ(split.rows, whole.rows);
    EXPECT_EQ(split.state, whole.state);
    EXPECT_EQ(split.validation, whole.validation);
  }
}

class BatchTest : public test::OneThread {};

TEST_F(BatchTest, any_split_of_an_update_gives_the_same_bits_for_the_gpt_shape) {
  Config config = wide_config();
  test::make_gpt(config.model);
  expect_any_split_to_be_the_same(config);
}

TEST_F(BatchTest, any_split_of_an_update_gives_the_same_bits_for_the_llama_shape) {
  Config config = wide_config();
  test::make_llama(config.model);
  expect_any_split_to_be_the_same(config);
  config.model.tie_embeddings = false;
  config.data.order = DataOrder::random;
  expect_any_split_to_be_the_same(config);
}

// With context 128 a block has two sequences, and a micro-batch of one sequence is not a multiple of it. split_note()
// reports this.
TEST_F(BatchTest, a_split_inside_of_a_block_is_noted_and_agrees_to_rounding) {
  Config config = wide_config();
  config.train.steps = 1;
  const Result whole = train_split(config, 8, 1, 1), inside = train_split(config, 1, 8, 1);
  EXPECT_NEAR(inside.rows[0].loss, whole.rows[0].loss, 1e-6);
  EXPECT_NE(inside.state, whole.state) << "then the condition has gone, and split_note with it";
  config.train.batch_size = 1, config.train.accumulation = 8;
  EXPECT_NE(split_note(config), "");
  config.train.batch_size = 2, config.train.accumulation = 4;
  EXPECT_EQ(split_note(config), "");
}

TEST_F(BatchTest, may_be_split_in_another_way_on_resume) {
  const test::TemporaryFolder folder;
  Config config = wide_config();
  const DataSource source = tiny_source(config, 6000);
  Trainer straight(config, source);
  test::train_to(straight, 2);
  straight.save(folder / "2");
  Config split = config;
  split.train.batch_size = 2, split.train.accumulation = 4;
  auto resumed = Trainer::resume(Checkpoint::load(folder / "2"), split, source);
  EXPECT_EQ(test::train_to(resumed, 4), test::train_to(straight, 4));
  EXPECT_EQ(state_of(resumed), state_of(straight));
  EXPECT_EQ(resumed.evaluate().validation.loss, straight.evaluate().validation.loss);
}

TEST_F(BatchTest, any_number_of_threads_gives_the_same_bits) {
  Config config = tiny_config();
  config.model.context = 32, config.model.dropout = 0.1, config.train.steps = 20, config.train.batch_size = 24;
  for (const bool gpt : {false, true}) {
    if (gpt) test::make_gpt(config.model);
    const Result one = train_split(config, 24, 1, 1);
    for (const int threads : {2, 3}) {
      const Result more = train_split(config, 24, 1, threads);
      EXPECT_EQ(more.rows, one.rows) << threads << " threads";
      EXPECT_EQ(more.state, one.state) << threads << " threads";
    }
  }
}

// Clipping is applied once per update, to the norm of all micro-batches together. The norm before clipping is reported.
TEST_F(BatchTest, is_clipped_once_an_update) {
  Config config = tiny_config();
  config.optimizer.name = OptimizerKind::sgd, config.optimizer.momentum = 0.0, config.optimizer.weight_decay = 0.0;
  config.optimizer.lr = config.optimizer.min_lr = 1.0, config.optimizer.grad_clip = 0.01;
  config.schedule.warmup_steps = 0;
  config.train.batch_size = 2, config.train.accumulation = 4;
  Trainer trainer(config, tiny_source(config));
  const auto& store = trainer.model().store();
  const std::vector<float> before(store.values(), store.values() + store.flat_size());
  const StepReport report = trainer.step();
  EXPECT_GT(report.grad_norm, 0.1);
  double squares = 0.0, gradient_squares = 0.0;
  for (Index i = 0; i < store.flat_size(); ++i) {
    const double moved = static_cast<double>(store.values()[i]) - before[static_cast<std::size_t>(i)];
    squares += moved * moved;
    gradient_squares += static_cast<double>(store.gradients()[i]) * store.gradients()[i];
  }
  EXPECT_NEAR(std::sqrt(squares), 0.01, 1e-5);
  EXPECT_NEAR(std::sqrt(gradient_squares), report.grad_norm, 1e-9);
}

// Micro-gradients (2, 0) and (0, 2): mean (1, 1), norm sqrt(2), clipped to 1.
TEST_F(BatchTest, clipping_the_sum_is_not_summing_the_clipped) {
  ParameterStore<double> store;
  store.add("w", {2});
  store.allocate();
  store.allocate_gradients();
  store.gradients()[0] += 2.0 / 2;
  store.gradients()[1] += 2.0 / 2;
  const double norm = gradient_norm(store);
  EXPECT_NEAR(norm, 1.4142135624, 1e-10);
  Sgd<double> sgd(store, {.momentum = 0.0});
  sgd.step(store, 1.0, clip_factor(norm, 1.0));
  EXPECT_NEAR(store.values()[0], -0.7071067812, 1e-10);
  EXPECT_NEAR(store.values()[1], -0.7071067812, 1e-10);
}

// One target in the first micro-batch, three in the second: each target has the weight 1/4.
TEST_F(BatchTest, micro_batches_weigh_by_their_targets) {
  Config config = tiny_config();
  config.model.vocab_size = 5, config.model.context = 4;
  ModelConfig m = config.model;
  m.n_kv_heads = m.n_heads;
  CausalLm<double> model(m);
  model.initialise(1);
  model.store().allocate_gradients();
  const std::vector<TokenId> inputs = {0, 1, 2, 3, 3, 1, 4, 2};
  const std::vector<TokenId> targets = {-100, -100, 2, -100, 1, -100, 0, 4};
  const auto gradients = [&](Index batches) {
    model.store().zero_gradients();
    LossSum sum;
    const auto size = static_cast<std::size_t>(8 / batches);
    for (std::size_t b = 0; b < static_cast<std::size_t>(batches); ++b) {
      Tape<double> tape;
      const std::span<const TokenId> in(inputs.data() + b * size, size), out(targets.data() + b * size, size);
      tape.backward(model.loss(tape, {in, 2 / batches}, out, {.divisor = 4, .report = &sum}));
    }
    EXPECT_EQ(sum.targets, 4);
    std::vector<double> all(model.store().gradients(), model.store().gradients() + model.store().flat_size());
    all.push_back(sum.mean());
    return all;
  };
  const auto whole = gradients(1), split = gradients(2);
  double largest = 0.0;
  for (std::size_t i = 0; i < whole.size(); ++i) {
    EXPECT_NEAR(split[i], whole[i], 1e-14) << i;
    largest = std::max(largest, std::abs(whole[i]));
  }
  EXPECT_GT(largest, 0.01);
}

}  // namespace
}  // namespace handgrad
