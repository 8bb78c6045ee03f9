#include "handgrad/train/trainer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <thread>

#include "core/math.h"
#include "handgrad/core/errors.h"
#include "handgrad/core/parallel.h"
#include "handgrad/generate/generator.h"
#include "support/message.h"
#include "support/temporary_folder.h"
#include "support/training.h"

namespace handgrad {
namespace {

using test::message_of;
using test::TemporaryFolder;
using test::tiny_config;
using test::tiny_source;

bool all_finite(const Trainer& trainer) {
  const auto& store = trainer.model().store();
  return std::all_of(store.values(), store.values() + store.flat_size(), [](float x) { return is_finite(x); });
}

Config learning_config(Index steps) {
  Config config = tiny_config();
  config.model.d_model = 32, config.model.d_ff = 64;
  config.train.steps = steps, config.schedule.warmup_steps = 10;
  config.optimizer.lr = 1e-2, config.optimizer.min_lr = 1e-3, config.optimizer.weight_decay = 0.0;
  return config;
}

class TrainerTest : public test::OneThread {};

TEST_F(TrainerTest, its_optimizer_is_the_one_of_the_config) {
  const auto weights_after_three_steps = [](auto make) {
    ParameterStore<float> store;
    store.add("w", {2, 3});
    store.allocate();
    store.allocate_gradients();
    for (Index i = 0; i < 6; ++i) store.mutable_values()[i] = store.gradients()[i] = static_cast<float>(i - 2);
    const auto optimizer = make(store);
    for (int n = 0; n < 3; ++n) optimizer->step(store, 0.125, 0.5);
    return std::vector<float>(store.values(), store.values() + 6);
  };
  const auto of_config = [&](OptimizerKind kind) {
    Config config;
    OptimizerConfig& o = config.optimizer;
    o.name = kind, o.momentum = 0.25, o.weight_decay = 0.375, o.beta1 = 0.5, o.beta2 = 0.625, o.eps = 0.03125;
    return weights_after_three_steps([&](auto& store) { return make_optimizer<float>(config, store); });
  };
  const SgdOptions sgd{.momentum = 0.25, .weight_decay = 0.375};
  EXPECT_EQ(of_config(OptimizerKind::sgd),
            weights_after_three_steps([&](auto& store) { return std::make_unique<Sgd<float>>(store, sgd); }));
  const AdamWOptions adamw{.beta1 = 0.5, .beta2 = 0.625, .eps = 0.03125, .weight_decay = 0.375};
  EXPECT_EQ(of_config(OptimizerKind::adamw),
            weights_after_three_steps([&](auto& store) { return std::make_unique<AdamW<float>>(store, adamw); }));
}

TEST_F(TrainerTest, overfits_one_batch) {
  // Four windows of 16 with different first characters: 65 tokens. The rest is for validation.
  const std::string text = "the quick brown fox jumps over the lazy dog and we sleep all day." + std::string(20, ' ');
  for (const bool gpt : {false, true}) {
    Config config = learning_config(200);
    config.model.context = 16, config.data.validation_fraction = 20.0 / 85.0;
    if (gpt) test::make_gpt(config.model);
    Trainer trainer(config, DataSource::from_text(config, text));
    ASSERT_EQ(trainer.source().train().size(), 65u);
    double loss = 0.0;
    while (!trainer.done()) loss = trainer.step().loss;
    EXPECT_LT(loss, 0.01) << (gpt ? "GPT" : "Llama") << " shape";
  }
}

// If the targets were shifted twice, the model would learn that C follows A.
TEST_F(TrainerTest, learns_what_comes_next) {
  Config config = learning_config(60);
  std::string text;
  for (int i = 0; i < 60; ++i) text += "ABCD";
  Trainer trainer(config, DataSource::from_text(config, text));
  double loss = 1.0;
  while (!trainer.done()) loss = trainer.step().loss;
  EXPECT_LT(loss, 0.01);
  std::string written;
  TextOptions options;
  options.tokens = 7, options.sampling.temperature = 0.0;
  generate_text(trainer.model(), trainer.source().tokenizer(), "A", options, [&](std::string_view piece) {
    written += piece;
    return true;
  });
  EXPECT_EQ(written, "BCDABCD");
}

TEST_F(TrainerTest, reports_each_step) {
  Config config = tiny_config();
  config.train.accumulation = 3;
  Trainer trainer(config, tiny_source(config));
  for (Index step = 1; step <= 3; ++step) {
    const StepReport report = trainer.step();
    EXPECT_EQ(report.step, step);
    EXPECT_EQ(report.tokens, step * 4 * 3 * 8);
    EXPECT_EQ(trainer.loop().step, step);
    EXPECT_EQ(trainer.loop().updates, step);
  }
}

// The row of step n logs the rate of the update that led to it: schedule(n - 1).
TEST_F(TrainerTest, follows_the_schedule) {
  const auto rates = [](Index warmup, Index total) {
    Config config = tiny_config();
    config.optimizer.lr = 1.0, config.optimizer.min_lr = 0.1, config.optimizer.name = OptimizerKind::sgd;
    config.optimizer.grad_clip = 1e-6;  // only the rates matter here
    config.schedule.warmup_steps = warmup, config.train.steps = total;
    Trainer trainer(config, tiny_source(config));
    std::vector<double> all;
    while (!trainer.done()) all.push_back(trainer.step().lr);
    return all;
  };
  const auto two = rates(2, 10);
  const double expected[] = {0.5, 1.0, 1.0, 0.9657, 0.8682, 0.7222, 0.55, 0.3778, 0.2318, 0.1343};
  for (std::size_t i = 0; i < 10; ++i) EXPECT_NEAR(two[i], expected[i], 5e-5) << "step " << i + 1;
  EXPECT_EQ(rates(0, 3)[0], 1.0);
  EXPECT_EQ(rates(10, 10).back(), 1.0);  // the warm-up ends at the last step
  const auto longer = rates(12, 10);
  for (std::size_t i = 0; i < 10; ++i) EXPECT_NEAR(longer[i], (static_cast<double>(i) + 1) / 12, 1e-12);
}

TEST_F(TrainerTest, evaluation_and_sampling_disturb_nothing) {
  Config config = tiny_config();
  config.model.dropout = 0.5;
  const DataSource source = tiny_source(config);
  Trainer quiet(config, source), busy(config, source);
  while (!quiet.done()) {
    const auto a = test::logged(quiet.step()), b = test::logged(busy.step());
    EXPECT_EQ(a, b);
    const double loss = busy.evaluate().validation.loss;
    EXPECT_EQ(busy.evaluate().validation.loss, loss);  // no dropout, and the same windows every time
    generate_text(busy.model(), source.tokenizer(), "the", {}, [](std::string_view) { return true; });
  }
  EXPECT_EQ(test::state_of(quiet), test::state_of(busy));
}

TEST_F(TrainerTest, evaluates_without_dropout) {
  const TemporaryFolder folder;
  Config config = tiny_config();
  const DataSource source = tiny_source(config);
  Trainer plain(config, source);
  plain.save(folder / "0");
  config.model.dropout = 0.5;
  auto dropping = Trainer::from_weights(Checkpoint::load(folder / "0"), config, source);
  EXPECT_EQ(plain.evaluate().validation.loss, dropping.evaluate().validation.loss);
  EXPECT_NE(plain.step().loss, dropping.step().loss);
}

TEST_F(TrainerTest, tells_its_observers) {
  struct Observer : TrainObserver {
    std::string told;
    void on_step(const StepReport& r) override { told += "step " + std::to_string(r.step) + "; "; }
    void on_evaluation(const EvaluationReport& r) override { told += r.is_best ? "best; " : "evaluated; "; }
    void on_save(const SaveReport& r) override { told += "saved " + std::to_string(r.step) + "; "; }
  } observer;
  const TemporaryFolder folder;
  Config config = tiny_config();
  Trainer trainer(config, tiny_source(config));
  trainer.observe(observer);
  trainer.step();
  trainer.evaluate();
  trainer.evaluate();
  trainer.save(folder / "1");
  EXPECT_EQ(observer.told, "step 1; best; evaluated; saved 1; ");
}

TEST_F(TrainerTest, stops_when_patience_runs_out) {
  Config config = tiny_config();
  config.eval.patience = 2, config.train.steps = 100;
  Trainer trainer(config, tiny_source(config));
  trainer.step();
  trainer.evaluate();
  EXPECT_FALSE(trainer.done());
  trainer.evaluate();  // not better than itself
  EXPECT_FALSE(trainer.done());
  trainer.evaluate();
  EXPECT_TRUE(trainer.done());
  EXPECT_EQ(trainer.loop().step, 1);
}

TEST_F(TrainerTest, keeps_count_of_the_best) {
  const auto sequence = [](LoopState loop, const std::vector<double>& losses) {
    for (const double loss : losses) {
      ++loop.step;
      note_evaluation(loop, loss);
    }
    return loop;
  };
  const double nan = std::nan("");
  const LoopState a = sequence({}, {2.0, nan, 1.5});
  EXPECT_EQ(a.best_loss, 1.5);
  EXPECT_EQ(a.best_step, 3);
  EXPECT_EQ(a.evaluations_since_best, 0);
  const LoopState b = sequence({}, {nan, 2.0});
  EXPECT_EQ(b.best_loss, 2.0);
  EXPECT_EQ(b.best_step, 2);
  const LoopState c = sequence(a, {1.8, nan, 1.5, -INFINITY});
  EXPECT_EQ(c.best_loss, 1.5);
  EXPECT_EQ(c.best_step, 3);
  EXPECT_EQ(c.evaluations_since_best, 4);
}

TEST_F(TrainerTest, stops_before_a_step_that_is_not_finite) {
  Config config = tiny_config();
  config.optimizer.lr = config.optimizer.min_lr = 1e6;
  config.optimizer.grad_clip = 0.0;
  config.train.steps = 1000, config.schedule.warmup_steps = 0;
  Trainer trainer(config, tiny_source(config));
  std::string before, message;
  Index completed = 0;
  try {
    while (!trainer.done()) {
      before = test::state_of(trainer);
      completed = trainer.step().step;
    }
  } catch (const NonFiniteError& error) {
    message = error.what();
  }
  EXPECT_EQ(message.find("step " + std::to_string(completed + 1) + ": the "), 0u) << message;
  EXPECT_NE(message.find("; the update was not applied"), std::string::npos) << message;
  EXPECT_EQ(test::state_of(trainer), before);
  EXPECT_EQ(trainer.loop().step, completed);
  EXPECT_TRUE(all_finite(trainer));
}

TEST_F(TrainerTest, names_the_step_of_a_weight_that_is_not_finite) {
  Config config = tiny_config();
  Trainer trainer(config, tiny_source(config));
  trainer.step();
  const Parameter* p = trainer.model().store().find("blocks/0/feed_forward/down/weight");
  ASSERT_NE(p, nullptr);
  trainer.mutable_model().store().mutable_values()[p->offset] = std::nanf("");
  const std::string before = test::state_of(trainer);
  EXPECT_EQ(message_of<NonFiniteError>([&] { trainer.step(); }),
            "step 2: the loss is nan; the update was not applied; first seen in blocks/0/feed_forward/linear, forward, "
            "element 0 is nan; input 0 (4, 8, 24) in [-0.01468, 0.01424]; input 1 (16, 24) in [-0.03158, 0.03701], "
            "1 not finite");
  EXPECT_EQ(test::state_of(trainer), before);
  const EvaluationReport report = trainer.evaluate();
  EXPECT_TRUE(std::isnan(report.validation.loss));
  EXPECT_FALSE(report.is_best);
}

TEST_F(TrainerTest, holds_a_config_made_by_a_program_to_the_rules_of_a_file) {
  const auto refusal = [](void (*change)(Config&)) {
    Config config = tiny_config();
    change(config);
    return message_of<ConfigError>([&] { Trainer(config, tiny_source(tiny_config())); });
  };
  EXPECT_EQ(refusal([](Config& c) { c.model.d_model = 10, c.model.n_heads = 3; }),
            "model.n_heads 3 must divide model.d_model 10: the remainder is 1");
  EXPECT_EQ(refusal([](Config& c) { c.model.n_heads = 16; }),
            "model.position \"rope\" needs an even head width, got 1: model.d_model 16 / model.n_heads 16");
  EXPECT_EQ(refusal([](Config& c) { c.train.batch_size = 0; }),
            "train.batch_size: expected an integer from 1 to 65536, got 0");
  EXPECT_EQ(
      refusal([](Config& c) { c.optimizer.lr = std::nan(""); }).find("optimizer.lr: expected a number from 0 to "), 0u);
  EXPECT_EQ(refusal([](Config& c) { c.model.vocab_size = 14; }),
            "model.vocab_size: the char tokenizer has 16 tokens, got 14; leave the key out");
}

TEST_F(TrainerTest, two_share_nothing) {
  const auto run = [](std::string& state) {
    const ThreadScope one(1);
    Config config = tiny_config();
    config.model.dropout = 0.1;
    Trainer trainer(config, tiny_source(config));
    test::train_to(trainer, 12);
    state = test::state_of(trainer);
  };
  std::string here, there;
  std::thread other([&] { run(there); });
  run(here);
  other.join();
  EXPECT_EQ(here, there);
}

}  // namespace
}  // namespace handgrad
