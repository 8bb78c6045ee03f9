#include "handgrad/observe/health.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>

#include "handgrad/core/buffer.h"
#include "handgrad/core/parallel.h"
#include "handgrad/train/run.h"
#include "support/checkpoint_editor.h"
#include "support/temporary_folder.h"
#include "support/training.h"

// The health records of a run (log.health_every): the figures of a whole model are exact, and recording them changes no
// bit of the run.

namespace handgrad {
namespace {

using Json = nlohmann::ordered_json;
using TrainingRun = Run;  // in a test body, Run is a member of testing::Test
using test::tiny_config;
using test::tiny_source;
using Figures = std::map<std::string, double>;

Figures figures_of(const StepReport& report) {
  const auto figures = report.health->figures();
  return {figures.begin(), figures.end()};
}

// Sets every element of a matrix of the trainer's model to element(row, column).
void plant(Trainer& trainer, const std::string& name, const std::function<double(Index, Index)>& element) {
  ParameterStore<float>& store = trainer.mutable_model().store();
  const Parameter& p = *store.find(name);
  float* values = store.mutable_values() + p.offset;
  for (Index i = 0; i < p.shape.size(); ++i) {
    values[i] = static_cast<float>(element(i / p.shape[-1], i % p.shape[-1]));
  }
}

class HealthOfARun : public test::OneThread {};

// A model whose figures can be computed by hand. The text repeats "abcd"; the window is "abcd", the targets are "bcda".
//
// The embeddings are unit vectors e_t with 4 axes. Attention and feed-forward add nothing, since their last projections
// are 0, so every norm gives 2 e_t for token t.
Trainer planted_trainer(double log_of_5, double grad_clip) {
  Config config;
  config.model.n_layers = 1, config.model.n_heads = 1, config.model.d_model = 4, config.model.d_ff = 4;
  config.model.context = 4, config.model.norm_eps = 1e-12, config.model.position = PositionKind::none;
  config.model.feed_forward = FeedForwardKind::relu_squared, config.model.tie_embeddings = false;
  config.train.batch_size = 1, config.train.accumulation = 2, config.train.steps = 4;
  config.optimizer.name = OptimizerKind::sgd, config.optimizer.momentum = 0.0, config.optimizer.weight_decay = 0.0;
  config.optimizer.lr = config.optimizer.min_lr = 1.0, config.optimizer.grad_clip = grad_clip;
  config.schedule.warmup_steps = 0, config.schedule.kind = ScheduleKind::constant;
  config.log.health_every = 1;
  std::string text;
  for (int i = 0; i < 40; ++i) text += "abcd";
  Trainer trainer(config, DataSource::from_text(config, text));

  plant(trainer, "embedding/weight", [](Index t, Index c) { return t == c; });
  // Query and key use one feature each, u_t and w_t: a score is (2 u)(2 w) / sqrt(4) = 2 u w.
  const double u[] = {10, 0.5, 0.5, 0.5}, w[] = {0, std::log(3.0), 0, std::log(4.0)};
  plant(trainer, "blocks/0/attention/qkv/weight", [&](Index row, Index t) {
    return row == 0 ? u[t] : row == 4 ? w[t] : 0.0;
  });
  plant(trainer, "blocks/0/attention/out/weight", [](Index, Index) { return 0.0; });
  // The units are max(2 x, 0)^2 of these: 4 for "a"; 0 for every token; 6.4e-7 for "d" (dead); 4e-6 for "d" (not dead).
  const double up[4][4] = {{1, 0, 0, 0}, {-1, -1, -1, -1}, {0, 0, 0, 4e-4}, {0, 0, 0, 1e-3}};
  plant(trainer, "blocks/0/feed_forward/up/weight", [&](Index f, Index t) { return up[f][t]; });
  plant(trainer, "blocks/0/feed_forward/down/weight", [](Index, Index) { return 0.0; });
  // The logits are (ln 5, 0, 0, 0) for every token: probabilities (5, 1, 1, 1) / 8.
  plant(trainer, "head/weight", [&](Index v, Index) { return v == 0 ? log_of_5 / 2 : 0.0; });
  return trainer;
}

TEST_F(HealthOfARun, every_figure_by_hand) {
  const double l3 = std::log(3.0), l4 = std::log(4.0), l5 = std::log(5.0), l9 = std::log(9.0);
  Trainer trainer = planted_trainer(l5, 0.0);
  const StepReport report = trainer.step();
  Figures seen = figures_of(report);
  const auto near = [](double a, double b) { EXPECT_NEAR(a, b, 2e-6 * std::abs(b)); };

  // "b" has the scores (0, ln 3), "c" (0, ln 3, 0), "d" (0, ln 3, 0, ln 4). "a" sees only itself: its score of 20 ln 4
  // for "d" is masked.
  near(seen["blocks/0/attention_logit_max"], l4);
  near(seen["blocks/0/attention_entropy"], ((l4 - l3 * 3 / 4) + (l5 - l3 * 3 / 5) + (l9 - l3 / 3 - l4 * 4 / 9)) / 4);
  EXPECT_EQ(seen["blocks/0/dead_units"], 0.5);

  // dlogits = (p - [target]) / 4. Only row a of the head is not 0, so dy = g (1, 1, 1, 1) at the final norm's output,
  // with g = (5/8) / 4 ln 5 / 2 if the target is another letter, and (5/8 - 1) / 4 ln 5 / 2 at "d", whose target is
  // "a".
  const double g = 5.0 / 32 * l5 / 2, g_d = -3.0 / 32 * l5 / 2, squares = 3 * g * g + g_d * g_d;
  // The head's gradient is dlogits (2 e_t)^T: |dlogits|^2 is (25 + 49 + 1 + 1) / 64 / 16 three times, then (9 + 1 + 1 +
  // 1) / 64 / 16. Its weights are ln 5 / 2, four times.
  const double head = 2 * std::sqrt((3 * 76 + 12) / 64.0 / 16);
  near(seen["head/grad_norm"], head);
  near(seen["head/update_ratio"], head / l5);
  // The gradient of the final norm's weight is dy times 2 e_t. The weight is four ones.
  const double norm = 2 * std::sqrt(squares);
  near(seen["final_norm/grad_norm"], norm);
  near(seen["final_norm/update_ratio"], norm / 2);
  // Through the norm: dx = 2 (dy - x <dy, x> / 4) with x = 2 e_t, which is 2 g on the three other axes. Every token
  // occurs once per window, so this is the embedding's gradient. Its weights are four ones.
  const double embedding = std::sqrt(12 * squares);
  near(seen["embedding/grad_norm"], embedding);
  near(seen["embedding/update_ratio"], embedding / 2);
  // In the block only `down` has a gradient, since every other path passes a 0: dx h^T, with h = (4, 0, 0, 0) at "a"
  // and almost 0 at "d". The weights are two norms of four ones, queries, keys and up.
  const double block = std::sqrt(12.0) * g * 4;
  const double weights = std::sqrt(8 + (100 + 0.75) + (l3 * l3 + l4 * l4) + (1 + 4 + 16e-8 + 1e-6));
  near(seen["blocks/0/grad_norm"], block);
  near(seen["blocks/0/update_ratio"], block / weights);

  near(report.grad_norm, std::sqrt(head * head + norm * norm + embedding * embedding + block * block));

  // Clipped to a norm of 0.01: the recorded norms do not change, the update becomes smaller.
  Trainer clipped = planted_trainer(l5, 0.01);
  const StepReport shrunk = clipped.step();
  Figures after = figures_of(shrunk);
  EXPECT_EQ(after["head/grad_norm"], seen["head/grad_norm"]);
  EXPECT_NEAR(after["head/update_ratio"], head / l5 * 0.01 / report.grad_norm, 1e-6);
}

// Rows of 0 in the up projection make units of 0 for every non-linearity; all other units vary.
TEST_F(HealthOfARun, dead_units_of_every_feed_forward_layer) {
  for (const FeedForwardKind kind :
       {FeedForwardKind::swiglu, FeedForwardKind::gelu, FeedForwardKind::gelu_tanh, FeedForwardKind::relu_squared}) {
    Config config = tiny_config();
    config.model.feed_forward = kind, config.model.n_layers = 2, config.log.health_every = 1;
    Trainer trainer(config, tiny_source(config));
    plant(trainer, "blocks/1/feed_forward/up/weight",
          [](Index f, Index c) { return f % 8 == 0 ? 0.0 : std::sin(static_cast<double>(f * 16 + c)); });
    Figures figures = figures_of(trainer.step());
    EXPECT_EQ(figures["blocks/1/dead_units"], 3.0 / 24.0) << static_cast<int>(kind);
    EXPECT_EQ(figures["blocks/0/dead_units"], 0.0) << static_cast<int>(kind);
  }
}

struct Variant {
  const char* name;
  std::function<void(Config&)> change;
};

const Variant variants[] = {
    {"plain", [](Config&) {}},
    {"dropout and accumulation",
     [](Config& c) { c.model.dropout = 0.2, c.train.batch_size = 2, c.train.accumulation = 3; }},
    {"gpt shape, textbook attention",
     [](Config& c) { test::make_gpt(c.model), c.model.attention = AttentionKind::explicit_form; }},
    {"llama shape, two layers, untied",
     [](Config& c) { test::make_llama(c.model), c.model.n_layers = 2, c.model.tie_embeddings = false; }},
};

TEST_F(HealthOfARun, watching_changes_no_bit) {
  for (const Variant& variant : variants) {
    SCOPED_TRACE(variant.name);
    Config config = tiny_config();
    variant.change(config);
    Trainer alone(config, tiny_source(config));
    const auto rows = test::train_to(alone, 12);
    for (const Index every : {1, 3}) {
      config.log.health_every = every;
      Trainer watched(config, tiny_source(config));
      for (Index step = 1; step <= 12; ++step) {
        const StepReport report = watched.step();
        EXPECT_EQ(test::logged(report), rows[static_cast<std::size_t>(step - 1)]);
        EXPECT_EQ(report.health.has_value(), step % every == 0) << step;
        if (!report.health) continue;
        double squares = 0.0;
        for (const PartHealth& part : report.health->parts) squares += part.grad_norm * part.grad_norm;
        EXPECT_NEAR(std::sqrt(squares), report.grad_norm, 1e-12 * report.grad_norm);
      }
      EXPECT_EQ(test::state_of(watched), test::state_of(alone));
    }
  }
}

// A block of sequences has 256 tokens, so a micro-batch of two windows of 128 is a whole block.
TEST_F(HealthOfARun, has_the_same_bits_for_any_number_of_threads_and_any_split) {
  Config config = tiny_config();
  config.model.context = 128, config.model.dropout = 0.1, config.train.batch_size = 8, config.log.health_every = 2;
  for (const AttentionKind kind : {AttentionKind::tiled, AttentionKind::explicit_form}) {
    config.model.attention = kind;
    Figures first;
    for (const auto& [batch, accumulation, threads] :
         {std::tuple{8, 1, 1}, std::tuple{8, 1, 2}, std::tuple{8, 1, 3}, std::tuple{2, 4, 2}}) {
      const ThreadScope scope(threads);
      config.train.batch_size = batch, config.train.accumulation = accumulation;
      Trainer trainer(config, tiny_source(config, 6000));
      trainer.step();
      const Figures figures = figures_of(trainer.step());
      if (first.empty()) first = figures;
      EXPECT_EQ(figures, first) << batch << " x " << accumulation << ", " << threads << " threads";
    }
  }
}

TEST_F(HealthOfARun, is_the_same_for_both_forms_of_attention) {
  Config config = tiny_config();
  test::make_llama(config.model);
  config.model.n_layers = 2, config.model.context = 160, config.log.health_every = 1;
  Figures figures[2];
  for (const bool textbook : {false, true}) {
    config.model.attention = textbook ? AttentionKind::explicit_form : AttentionKind::tiled;
    Trainer trainer(config, tiny_source(config, 3000));
    plant(trainer, "blocks/0/attention/q_norm/weight", [](Index, Index c) { return 3.0 + static_cast<double>(c); });
    figures[textbook] = figures_of(trainer.step());
  }
  for (const auto& [name, value] : figures[0]) EXPECT_NEAR(figures[1].at(name), value, 1e-5) << name;
}

// No step without a health record allocates memory, neither before nor after a step with one.
TEST_F(HealthOfARun, unwatched_steps_allocate_nothing) {
  Config config = tiny_config();
  config.log.health_every = 5;
  Trainer trainer(config, tiny_source(config));
  trainer.step();
  for (Index step = 2; step <= 12; ++step) {
    const Index before = memory::allocations_of_this_thread();
    trainer.step();
    if (step % 5 == 0) {
      EXPECT_GT(memory::allocations_of_this_thread(), before);
    } else {
      EXPECT_EQ(memory::allocations_of_this_thread(), before) << "step " << step;
    }
  }
}

std::vector<Json> rows_of(const std::string& folder) {
  std::vector<Json> rows;
  std::ifstream file(folder + "/metrics.jsonl");
  for (std::string line; std::getline(file, line);) rows.push_back(Json::parse(line));
  return rows;
}

std::string health_rows(const std::string& folder) {
  std::string text;
  for (const Json& row : rows_of(folder)) {
    if (row["split"] == "health") text += row.dump() + "\n";
  }
  return text;
}

TEST_F(HealthOfARun, is_a_row_of_its_metrics) {
  const test::TemporaryFolder folder;
  Config config = tiny_config();
  config.train.steps = 8, config.log.health_every = 3, config.log.every = 4;
  TrainingRun run(Trainer(config, tiny_source(config)), folder / "run");
  while (!run.done()) run.advance();
  std::string order;
  for (const Json& row : rows_of(folder / "run")) {
    order += row["split"].get<std::string>() + std::to_string(row["step"].get<Index>()) + " ";
    if (row["split"] != "health") continue;
    std::string keys;
    for (const auto& [key, value] : row.items()) keys += key + " ";
    EXPECT_EQ(keys,
              "step split embedding/grad_norm embedding/update_ratio blocks/0/grad_norm blocks/0/update_ratio "
              "blocks/0/attention_logit_max blocks/0/attention_entropy blocks/0/dead_units final_norm/grad_norm "
              "final_norm/update_ratio ");
  }
  EXPECT_EQ(order, "train1 health3 train4 val4 health6 train8 val8 ");
}

TEST_F(HealthOfARun, is_the_same_after_a_stop) {
  const test::TemporaryFolder folder;
  Config config = tiny_config();
  config.model.dropout = 0.1, config.log.health_every = 2;
  TrainingRun straight(Trainer(config, tiny_source(config)), folder / "straight");
  while (!straight.done()) straight.advance();
  {
    TrainingRun run(Trainer(config, tiny_source(config)), folder / "run");
    while (run.trainer().loop().step < 7) run.advance();  // then killed; the last checkpoint is that of step 4
  }
  const Checkpoint checkpoint = Checkpoint::load(folder / "run/checkpoints/latest.h5");
  TrainingRun run(Trainer::resume(checkpoint, config, tiny_source(config)), folder / "run");
  while (!run.done()) run.advance();
  EXPECT_EQ(health_rows(folder / "run"), health_rows(folder / "straight"));
  EXPECT_EQ(test::state_of(run.trainer()), test::state_of(straight.trainer()));
}

// Health records are turned on when a run is resumed whose checkpoint lacks the key.
TEST_F(HealthOfARun, can_be_asked_for_on_resume) {
  const test::TemporaryFolder folder;
  Config config = tiny_config();
  Trainer trainer(config, tiny_source(config));
  test::train_to(trainer, 5);
  trainer.save(folder / "5");
  test::CheckpointEditor editor(folder / "5");
  editor.edit_config("format = 2", "format = 1");
  editor.edit_config("health_every = 0\n", "");
  editor.save();
  const Checkpoint old = Checkpoint::load(folder / "5");
  EXPECT_EQ(old.config().log.health_every, 0);
  config.log.health_every = 6;
  auto resumed = Trainer::resume(old, config, tiny_source(config));
  EXPECT_TRUE(resumed.step().health);
  EXPECT_FALSE(resumed.step().health);
  test::train_to(trainer, 7);
  EXPECT_EQ(test::state_of(resumed), test::state_of(trainer));
}

// A skipped update has a health record, too. It shows where the NaN is, and that no weight has changed.
TEST_F(HealthOfARun, of_a_skipped_update) {
  struct Planter final : GraphObserver<float> {
    void after_forward(Graph<float>& graph, int id) override {
      const bool here =
          graph.scope_of(id) == "blocks/1/attention" && !std::string(graph.node(id).operation).find("lin");
      if (here && passes++ == 2) graph.value(id)[0] = std::nanf("");  // the first query projection of the second step
    }
    int passes = 0;
  } planter;
  const test::TemporaryFolder folder;
  Config config = tiny_config();
  config.model.n_layers = 2, config.log.health_every = 1, config.train.on_nonfinite = NonFinitePolicy::skip;
  TrainingRun run(Trainer(config, tiny_source(config)), folder / "run");
  run.trainer().observe_graph(planter);
  for (int i = 0; i < 3; ++i) run.advance();
  const auto rows = rows_of(folder / "run");
  ASSERT_EQ(rows.size(), 6u);
  for (const std::size_t whole : {1, 5}) EXPECT_FALSE(rows[whole].contains("skipped"));
  const Json& row = rows[3];
  EXPECT_EQ(row["split"], "health");
  EXPECT_EQ(row["step"], 2);
  EXPECT_EQ(row["skipped"], true);
  EXPECT_TRUE(row["blocks/0/attention_logit_max"].is_number());
  EXPECT_EQ(row["blocks/1/attention_logit_max"], "nan");
  EXPECT_EQ(row["blocks/1/attention_entropy"], "nan");
  EXPECT_EQ(row["blocks/1/grad_norm"], "nan");
  EXPECT_EQ(row["blocks/1/update_ratio"], 0.0);
  EXPECT_GT(rows[5]["blocks/1/update_ratio"].get<double>(), 0.0);
}

}  // namespace
}  // namespace handgrad
