#include <gtest/gtest.h>

#include <functional>
#include <map>

#include "handgrad/core/errors.h"
#include "handgrad/core/parallel.h"
#include "support/message.h"
#include "support/temporary_folder.h"
#include "support/training.h"

// A run that is stopped and resumed has the bits of the uninterrupted run.

namespace handgrad {
namespace {

using test::Logged;
using test::message_of;
using test::state_of;
using test::TemporaryFolder;
using test::tiny_config;
using test::tiny_source;

struct Variant {
  const char* name;
  std::function<void(Config&)> change;
};

const Variant variants[] = {
    {"plain", [](Config&) {}},
    {"dropout", [](Config& c) { c.model.dropout = 0.1; }},
    {"accumulation", [](Config& c) { c.train.batch_size = 2, c.train.accumulation = 3, c.model.dropout = 0.1; }},
    {"random order", [](Config& c) { c.data.order = DataOrder::random; }},
    {"sgd", [](Config& c) { c.optimizer.name = OptimizerKind::sgd, c.optimizer.lr = 0.1; }},
    {"gpt shape, untied", [](Config& c) { test::make_gpt(c.model), c.model.tie_embeddings = false; }},
    {"llama shape, two layers", [](Config& c) { test::make_llama(c.model), c.model.n_layers = 2; }},
};

// Evaluates every third step, as a run does.
std::vector<Logged> train_on(Trainer& trainer, const std::function<void(Index)>& after_step = {}) {
  std::vector<Logged> rows;
  while (!trainer.done()) {
    rows.push_back(test::logged(trainer.step()));
    if (trainer.loop().step % 3 == 0) trainer.evaluate();
    if (after_step) after_step(trainer.loop().step);
  }
  return rows;
}

class ResumeTest : public test::OneThread {};

TEST_F(ResumeTest, is_the_run_that_was_never_stopped) {
  for (const Variant& variant : variants) {
    SCOPED_TRACE(variant.name);
    const TemporaryFolder folder;
    const auto path = [&](Index step) { return folder / std::to_string(step); };
    Config config = tiny_config();
    variant.change(config);
    // The training part has 20 windows. With 4 windows per update the epoch ends after step 5, with 6 it ends within
    // step 4.
    const DataSource source = tiny_source(config);
    ASSERT_EQ((source.train().size() - 1) / 8, 20u);
    std::vector<Logged> rows;
    std::string state;
    LoopState loop;
    {
      const ThreadScope one(1);
      Trainer straight(config, source);
      straight.save(path(0));
      rows = train_on(straight, [&](Index step) { straight.save(path(step)); });
      state = state_of(straight), loop = straight.loop();
    }
    int threads = 0;
    for (const Index stop : {0, 1, 4, 5, 6, 9, 12}) {
      const ThreadScope others(1 + threads++ % 3);
      auto resumed = Trainer::resume(path(stop), source);
      EXPECT_EQ(resumed.done(), stop == 12);
      EXPECT_EQ(train_on(resumed), std::vector<Logged>(rows.begin() + stop, rows.end())) << "stopped at " << stop;
      EXPECT_EQ(state_of(resumed), state) << "stopped at " << stop;
      EXPECT_EQ(resumed.loop().tokens, loop.tokens);
      EXPECT_EQ(resumed.loop().best_loss, loop.best_loss);
      EXPECT_EQ(resumed.loop().best_step, loop.best_step);
      EXPECT_EQ(resumed.loop().evaluations_since_best, loop.evaluations_since_best);
    }
  }
}

// Shows that the test above detects lost moments and a lost count of updates.
TEST_F(ResumeTest, weights_alone_are_another_run) {
  const TemporaryFolder folder;
  const Config config = tiny_config();
  const DataSource source = tiny_source(config);
  Trainer straight(config, source);
  test::train_to(straight, 5);
  straight.save(folder / "5");
  const Checkpoint checkpoint = Checkpoint::load(folder / "5");

  auto resumed = Trainer::resume(checkpoint, config, source);
  auto fresh = Trainer::from_weights(checkpoint, config, source);
  EXPECT_EQ(test::weights_of(resumed), test::weights_of(fresh));
  EXPECT_EQ(fresh.loop().step, 0);
  resumed.step(), fresh.step();
  EXPECT_EQ(resumed.optimizer().updates(), 6);
  EXPECT_EQ(fresh.optimizer().updates(), 1);
  EXPECT_NE(test::weights_of(resumed), test::weights_of(fresh));
}

// Adam's first update after resuming has t = 6: m / (1 - 0.9^6), v / (1 - 0.999^6).
TEST_F(ResumeTest, goes_on_with_adams_count) {
  const TemporaryFolder folder;
  Config config = tiny_config();
  config.optimizer.beta2 = 0.999, config.optimizer.weight_decay = 0.0, config.optimizer.grad_clip = 0.0;
  const DataSource source = tiny_source(config);
  Trainer straight(config, source);
  test::train_to(straight, 5);
  straight.save(folder / "5");
  auto resumed = Trainer::resume(folder / "5", source);
  const Index size = resumed.model().store().flat_size();
  const std::vector<float> before(resumed.model().store().values(), resumed.model().store().values() + size);
  const double lr = resumed.step().lr;
  const float *after = resumed.model().store().values(), *m = resumed.optimizer().state(0).data(),
              *v = resumed.optimizer().state(1).data();
  double largest = 0.0;
  for (Index i = 0; i < size; ++i) {
    const double expected = lr * (m[i] / 0.468559) / (std::sqrt(v[i] / 0.005985019980014996) + config.optimizer.eps);
    const double moved = static_cast<double>(before[static_cast<std::size_t>(i)]) - after[i];
    ASSERT_NEAR(moved, expected, 1e-6 * std::abs(expected) + 2e-7) << i;
    largest = std::max(largest, std::abs(moved));
  }
  EXPECT_GT(largest, 1e-5);
}

TEST_F(ResumeTest, refuses_what_would_make_it_another_run_and_names_both_values) {
  const TemporaryFolder folder;
  Config stored = tiny_config();
  stored.model.n_heads = 4, stored.model.n_layers = 2;
  Trainer trainer(stored, tiny_source(stored));
  test::train_to(trainer, 5);
  trainer.save(folder / "5");
  const Checkpoint checkpoint = Checkpoint::load(folder / "5");
  const std::string opening = "cannot resume: ";
  const std::pair<std::function<void(Config&)>, std::string> cases[] = {
      {[](Config& c) { c.model.n_layers = 3; }, "model.n_layers is 2 in the stored run, 3 requested"},
      {[](Config& c) { c.model.n_layers = 1; }, "model.n_layers is 2 in the stored run, 1 requested"},
      {[](Config& c) { std::swap(c.model.d_ff, c.model.d_model); },
       "model.d_model is 16 in the stored run, 24 requested; model.d_ff is 24 in the stored run, 16 requested"},
      {[](Config& c) { c.model.n_heads = 2; },
       "model.n_heads is 4 in the stored run, 2 requested; model.n_kv_heads is 4 in the stored run, 2 requested"},
      {[](Config& c) { c.model.rope_theta = 500000; },
       "model.rope_theta is 10000.0 in the stored run, 500000.0 requested"},
      {[](Config& c) { c.model.norm_eps = 1e-6; }, "model.norm_eps is 1e-05 in the stored run, 1e-06 requested"},
      {[](Config& c) { c.model.rope_pairing = RopePairing::half; },
       "model.rope_pairing is \"adjacent\" in the stored run, \"half\" requested"},
      {[](Config& c) { c.model.tie_embeddings = false; },
       "model.tie_embeddings is true in the stored run, false requested"},
      {[](Config& c) { c.train.seed = 2; }, "train.seed is 1 in the stored run, 2 requested"},
      {[](Config& c) { c.data.order = DataOrder::random; },
       "data.order is \"epoch\" in the stored run, \"random\" requested"},
      {[](Config& c) { c.optimizer.name = OptimizerKind::sgd; },
       "optimizer.name is \"adamw\" in the stored run, \"sgd\" requested"},
      {[](Config& c) { c.train.steps = 4; }, "train.steps 4 requested, but 5 are completed"},
      {[](Config& c) { c.train.batch_size = 8; },
       "train.batch_size x train.accumulation is 4 x 1 in the stored run, 8 x 1 requested"},
  };
  for (const auto& [change, expected] : cases) {
    Config requested = stored;
    change(requested);
    EXPECT_EQ(message_of<ConfigError>([&] { Trainer::resume(checkpoint, requested, tiny_source(stored)); }),
              opening + expected);
  }
}

TEST_F(ResumeTest, refuses_another_text_or_tokenizer) {
  const TemporaryFolder folder;
  const Config config = tiny_config();
  Trainer trainer(config, tiny_source(config));
  trainer.save(folder / "0");
  std::string text = test::sample_text(180);
  std::swap(text[3], text[4]);
  EXPECT_NE(message_of<ConfigError>([&] {
              Trainer::resume(folder / "0", DataSource::from_text(config, text));
            }).find("data.files: the text is not the one that this run was trained on"),
            std::string::npos);
  text[0] = 'Z';  // one changed character
  EXPECT_EQ(message_of<ConfigError>([&] { Trainer::resume(folder / "0", DataSource::from_text(config, text)); }),
            folder / "0" + ": the tokenizer of the run (char, 16 tokens) is not the given one (char, 17 tokens)");
  Config bytes = config;
  bytes.tokenizer.kind = TokenizerKind::byte;
  EXPECT_EQ(
      message_of<ConfigError>([&] { Trainer::resume(Checkpoint::load(folder / "0"), bytes, tiny_source(bytes)); }),
      folder / "0" + ": the tokenizer of the run (char, 16 tokens) is not the given one (byte, 256 tokens)");
}

TEST_F(ResumeTest, lets_steps_grow_and_what_does_not_matter_change) {
  const TemporaryFolder folder;
  Config config = tiny_config();
  config.schedule.kind = ScheduleKind::constant;
  const DataSource source = tiny_source(config);
  Trainer trainer(config, source);
  test::train_to(trainer, 12);
  trainer.save(folder / "12");
  Config more = config;
  more.train.steps = 15, more.eval.every = 1, more.checkpoint.keep = 7, more.log.every = 3;
  auto resumed = Trainer::resume(Checkpoint::load(folder / "12"), more, source);
  EXPECT_FALSE(resumed.done());
  test::train_to(resumed, 15);
  EXPECT_TRUE(resumed.done());

  Trainer straight(more, source);
  test::train_to(straight, 15);
  EXPECT_EQ(state_of(resumed), state_of(straight));
}

}  // namespace
}  // namespace handgrad
