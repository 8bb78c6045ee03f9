#include "handgrad/observe/nonfinite.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "handgrad/checkpoint/run_folder.h"
#include "handgrad/core/parallel.h"
#include "handgrad/io/container_reader.h"
#include "handgrad/text/windows.h"
#include "handgrad/train/run.h"
#include "support/temporary_folder.h"

// A NaN or an infinity planted in any operation's output or gradient never reaches the weights, and the error names the
// operation.

namespace handgrad {
namespace {

constexpr float nan = std::numeric_limits<float>::quiet_NaN(), inf = std::numeric_limits<float>::infinity();

Config config_of(bool gpt) {
  Config config;
  ModelConfig& m = config.model;
  m.n_layers = 2, m.n_heads = 2, m.d_model = 8, m.context = 8, m.d_ff = 16;
  if (gpt) {
    m.norm = NormKind::layer, m.feed_forward = FeedForwardKind::gelu, m.position = PositionKind::learned;
    m.bias = true, m.dropout = 0.1;
  } else {
    m.n_kv_heads = 1, m.qk_norm = true, m.tie_embeddings = false;
  }
  config.train.steps = 20;
  config.train.batch_size = 2;
  config.train.accumulation = 2;
  config.eval.batches = 1;
  return config;
}

Trainer trainer_of(const Config& config) {
  std::string text;
  for (int i = 0; i < 60; ++i) text += "the cat sat on the mat and ";
  return Trainer(config, DataSource::from_text(config, text));
}

constexpr int in_output = -1;

// Plants a value in the output of the operation number `target` of every micro-batch, or in the gradient of one of its
// inputs.
class Planter final : public GraphObserver<float> {
 public:
  Planter(int target, int input, float value) : target_(target), input_(input), value_(value) {}

  void after_forward(Graph<float>& graph, int id) override {
    if (id == target_) {
      name_ = graph.node(id).operation;
      scope_ = graph.scope_of(id);
      if (input_ == in_output) graph.value(id)[graph.node(id).shape.size() - 1] = value_, planted_ = true;
    }
    last_ = id;
  }
  void after_backward(Graph<float>& graph, int id) override {
    if (id != target_) return;
    const auto& inputs = graph.node(id).inputs;
    inputs_ = static_cast<int>(inputs.size());
    if (input_ == in_output || input_ >= inputs_) return;
    const NodePart& part = inputs[static_cast<std::size_t>(input_)];
    if (!part.takes_gradient) return;
    graph.gradient_of(part).data[0] = value_;
    planted_ = true;
  }
  const std::string& name() const { return name_; }
  const std::string& scope() const { return scope_; }
  bool planted() const { return planted_; }
  int last() const { return last_; }
  int inputs() const { return inputs_; }

 private:
  int target_, input_;
  float value_;
  std::string name_, scope_;
  bool planted_ = false;
  int last_ = -1, inputs_ = 0;
};

int operations_in(const Config& config) {
  Trainer trainer = trainer_of(config);
  Planter none(-1, in_output, 0.0f);
  trainer.observe_graph(none);
  trainer.step();
  return none.last() + 1;
}

// A leaf (a parameter, the table of tokens) is not an operation and computes no value.
bool makes_a_value(const Config& config, int target) {
  Trainer trainer = trainer_of(config);
  Planter planter(target, in_output, 0.0f);
  trainer.observe_graph(planter);
  trainer.step();
  return planter.planted();
}

void plant_everywhere(const Config& config) {
  const ThreadScope one(1);
  const int count = operations_in(config);
  int planted = 0;
  for (int target = 0; target < count; ++target) {
    int inputs = 0;  // of the operation; known after it has run
    for (int input = in_output; input < inputs; ++input) {
      for (const float value : {nan, inf}) {
        Trainer trainer = trainer_of(config);
        const ParameterStore<float>& store = trainer.model().store();
        const std::vector<float> before(store.values(), store.values() + store.flat_size());
        Planter planter(target, input, value);
        trainer.observe_graph(planter);
        try {
          trainer.step();
          inputs = std::max(inputs, planter.inputs());
          ASSERT_FALSE(planter.planted()) << planter.scope() << "/" << planter.name() << " " << input << " " << value;
          continue;  // a leaf has neither a forward nor a backward pass, and some inputs have no gradient
        } catch (const NonFiniteStep& failure) {
          ++planted;
          ASSERT_NE(failure.origin(), nullptr) << failure.what();
          EXPECT_EQ(failure.origin()->operation, planter.name()) << failure.what();
          EXPECT_EQ(failure.origin()->scope, planter.scope()) << failure.what();
          EXPECT_EQ(failure.origin()->backward, input != in_output) << failure.what();
          EXPECT_EQ(failure.origin()->input, std::max(input, 0)) << failure.what();
          inputs = std::max(inputs, planter.inputs());
          EXPECT_EQ(failure.step(), 1);
          EXPECT_EQ(failure.windows().size(), 2u);
          EXPECT_FALSE(failure.origin()->witnesses.empty());
        }
        EXPECT_EQ(std::memcmp(before.data(), store.values(), before.size() * sizeof(float)), 0)
            << "an update was applied";
        EXPECT_EQ(trainer.loop().step, 0);
      }
    }
  }
  EXPECT_GT(planted, 100);
  ::testing::Test::RecordProperty("planted", planted);
}

}  // namespace

TEST(NonFinite, planted_in_every_operation_of_the_gpt_shape) { plant_everywhere(config_of(true)); }
TEST(NonFinite, planted_in_every_operation_of_the_llama_shape) { plant_everywhere(config_of(false)); }
TEST(NonFinite, planted_in_every_operation_of_textbook_attention) {
  Config config = config_of(true);
  config.model.attention = AttentionKind::explicit_form;
  plant_everywhere(config);
}

TEST(NonFinite, planted_in_every_operation_of_the_other_feed_forwards) {
  Config config = config_of(false);
  config.model.feed_forward = FeedForwardKind::relu_squared;
  config.model.position = PositionKind::none;
  plant_everywhere(config);
  config = config_of(true);
  config.model.feed_forward = FeedForwardKind::gelu_tanh;
  config.model.position = PositionKind::sinusoidal;
  plant_everywhere(config);
}

TEST(NonFinite, the_message_says_what_is_wrong_with_the_norm) {
  const auto message = [](float value) -> std::string {
    Trainer trainer = trainer_of(config_of(false));
    Planter planter(operations_in(config_of(false)) - 1, true, value);
    trainer.observe_graph(planter);
    try {
      trainer.step();
    } catch (const NonFiniteStep& failure) {
      return failure.what();
    }
    return "";
  };
  EXPECT_TRUE(message(std::copysign(nan, -1.0f)).starts_with("step 1: the gradient norm is nan; "));
  EXPECT_TRUE(message(inf).starts_with("step 1: the gradient norm is ")) << message(inf);
  EXPECT_NE(message(1e30f).find(", above 1e+18; the update was not applied"), std::string::npos) << message(1e30f);
}

TEST(NonFinite, watching_does_not_change_a_bit) {
  Trainer watched = trainer_of(config_of(true)), alone = trainer_of(config_of(true));
  NonFiniteTracer<float> tracer;
  watched.observe_graph(tracer);
  for (int i = 0; i < 5; ++i) {
    watched.step();
    alone.step();
  }
  EXPECT_EQ(tracer.origin(), nullptr);
  const auto& a = watched.model().store();
  EXPECT_EQ(
      std::memcmp(a.values(), alone.model().store().values(), static_cast<std::size_t>(a.flat_size()) * sizeof(float)),
      0);
}

namespace {

// Plants a NaN in some steps only; a step has two micro-batches.
class SometimesNan final : public GraphObserver<float> {
 public:
  explicit SometimesNan(std::vector<bool> bad) : bad_(std::move(bad)) {}
  void after_forward(Graph<float>& graph, int id) override {
    if (std::string(graph.node(id).operation) != "linear_cross_entropy") return;
    const std::size_t step = passes_++ / 2;
    if (step < bad_.size() && bad_[step]) *graph.value(id) = nan, poison_ = true;
  }
  void after_backward(Graph<float>& graph, int id) override {
    if (!poison_) return;
    poison_ = false;
    graph.gradient_of(graph.node(id).inputs[0]).data[0] = nan;
  }

 private:
  std::vector<bool> bad_;
  std::size_t passes_ = 0;
  bool poison_ = false;
};

}  // namespace

TEST(NonFinite, skipped_updates_are_counted_and_three_in_a_row_stop) {
  Config config = config_of(true);
  config.train.on_nonfinite = NonFinitePolicy::skip;
  Trainer trainer = trainer_of(config);
  SometimesNan faults({false, true, true, false, true, true, true});
  trainer.observe_graph(faults);
  EXPECT_FALSE(trainer.step().skipped);
  EXPECT_TRUE(trainer.step().skipped);
  EXPECT_TRUE(trainer.step().skipped);
  EXPECT_EQ(trainer.loop().skipped_in_row, 2);
  EXPECT_FALSE(trainer.step().skipped);
  EXPECT_EQ(trainer.loop().skipped_in_row, 0);
  EXPECT_EQ(trainer.loop().step, 4);
  EXPECT_EQ(trainer.loop().updates, 2);
  trainer.step();
  trainer.step();
  EXPECT_THROW(trainer.step(), NonFiniteStep);
  EXPECT_EQ(trainer.loop().skipped, 4);
}

TEST(NonFinite, a_save_that_is_due_waits_for_a_sound_update) {
  const test::TemporaryFolder folder;
  Config config = config_of(true);
  config.train.on_nonfinite = NonFinitePolicy::skip;
  config.checkpoint.every = 2, config.checkpoint.keep = 20, config.eval.every = 100;
  handgrad::Run run(trainer_of(config), folder.path() + "/run");
  SometimesNan faults({false, false, false, true, true, false, false});
  run.trainer().observe_graph(faults);
  std::vector<Index> latest;
  for (int step = 1; step <= 7; ++step) {
    run.advance();
    const std::vector<Index> steps = checkpoint_steps(folder.path() + "/run");
    latest.push_back(steps.empty() ? 0 : *std::max_element(steps.begin(), steps.end()));
  }
  EXPECT_EQ(latest, (std::vector<Index>{0, 2, 2, 2, 2, 6, 6}));  // step 4 is skipped and therefore not saved
}

TEST(NonFinite, ten_in_all_stop) {
  Config config = config_of(true);
  config.train.on_nonfinite = NonFinitePolicy::skip;
  Trainer trainer = trainer_of(config);
  std::vector<bool> faults;
  for (int i = 0; i < 20; ++i) faults.push_back(i % 2 == 1);
  SometimesNan observer(faults);
  trainer.observe_graph(observer);
  for (int i = 0; i < 19; ++i) trainer.step();
  EXPECT_EQ(trainer.loop().skipped, 9);
  EXPECT_THROW(trainer.step(), NonFiniteStep);
}

namespace {

// Plants a NaN in the second of two micro-batches.
class SecondIsNan final : public GraphObserver<float> {
 public:
  void after_forward(Graph<float>& graph, int id) override {
    if (std::string(graph.node(id).operation) == "linear_cross_entropy" && passes_++ % 2 == 1) *graph.value(id) = nan;
  }

 private:
  int passes_ = 0;
};

}  // namespace

TEST(NonFinite, the_windows_are_those_of_the_micro_batch_at_fault) {
  Trainer trainer = trainer_of(config_of(true));
  trainer.step();
  SecondIsNan fault;
  trainer.observe_graph(fault);
  const Config& config = trainer.config();
  const TokenWindows order(trainer.source().train(), config.model.context, DataOrder::epoch,
                           static_cast<std::uint64_t>(config.train.seed));
  try {
    trainer.step();
    FAIL() << "nothing was noticed";
  } catch (const NonFiniteStep& failure) {  // step 1 had samples 0 to 3; step 2 begins with samples 4 and 5
    EXPECT_EQ(failure.windows(), (std::vector<Index>{order.start(6), order.start(7)}));
  }
}

TEST(NonFinite, a_run_leaves_what_the_operation_had_read) {
  const test::TemporaryFolder folder;
  int target = 30;
  while (!makes_a_value(config_of(true), target)) ++target;
  handgrad::Run run(trainer_of(config_of(true)), folder.path() + "/run");
  Planter planter(target, in_output, nan);
  run.trainer().observe_graph(planter);
  EXPECT_THROW(run.advance(), NonFiniteStep);
  const Container container = Container::load(folder.path() + "/run/nonfinite-step-1.h5");
  EXPECT_EQ(container.attribute<std::string>("/", "operation"), planter.name());
  EXPECT_EQ(container.attribute<std::string>("/", "pass"), "forward");
  EXPECT_FALSE(container.values<float>("/input_0").empty());
  EXPECT_EQ(container.values<std::int64_t>("/windows").size(), 2u);
}

}  // namespace handgrad
