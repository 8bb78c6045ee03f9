#include "handgrad/observe/health.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "handgrad/autograd/tape.h"
#include "handgrad/core/parallel.h"
#include "handgrad/ops/causal_attention.h"
#include "handgrad/ops/linear.h"
#include "handgrad/ops/scaled_dot_product_attention.h"
#include "support/attention.h"
#include "support/values.h"

// Each figure against numbers that are computed here, on tapes of one operation.

namespace handgrad {
namespace {

using test::random_tensor;

constexpr float nan = std::numeric_limits<float>::quiet_NaN(), inf = std::numeric_limits<float>::infinity();

std::map<std::string, double> figures_of(const HealthMonitor<float>& monitor) {
  const auto figures = monitor.report().figures();
  return {figures.begin(), figures.end()};
}

// A block of which only the down projection matters, of `units` units, and one weight outside of it.
struct OneBlock {
  explicit OneBlock(Index units) {
    store.add("embedding/weight", {2});
    down = store.add("blocks/0/feed_forward/down/weight", {1, units});
    store.allocate();
    store.allocate_gradients();
  }
  ParameterStore<float> store;
  ParameterId down = 0;
  Tape<float> tape;
};

enum class Form { tiled, textbook };

// Attention in the block's scope, as the model does it.
void attend(OneBlock& block, HealthMonitor<float>& monitor, Form form, const Tensor<float>& q, const Tensor<float>& k,
            const AttentionOptions& options = {}) {
  block.tape.reset();
  const Tape<float>::Watch watch(block.tape, monitor);
  const Tape<float>::Scope outer(block.tape, "blocks/0"), inner(block.tape, "attention");
  const Var<float> vq = block.tape.variable(q), vk = block.tape.variable(k), vv = block.tape.variable(k);
  if (form == Form::tiled) {
    causal_attention(vq, vk, vv, options);
  } else {
    test::explicit_attention(vq, vk, vv, options);
  }
}

struct AttentionFigures {
  double largest, entropy;
  explicit AttentionFigures(const HealthMonitor<float>& monitor) {
    auto figures = figures_of(monitor);
    largest = figures["blocks/0/attention_logit_max"], entropy = figures["blocks/0/attention_entropy"];
  }
  bool operator==(const AttentionFigures&) const = default;
};

AttentionFigures attention_figures(Form form, const Tensor<float>& q, const Tensor<float>& k,
                                   const AttentionOptions& options = {}) {
  OneBlock block(1);
  HealthMonitor<float> monitor(block.store);
  attend(block, monitor, form, q, k, options);
  return AttentionFigures(monitor);
}

TEST(Health, names_its_figures_in_the_order_of_the_parameters) {
  ParameterStore<float> store;
  for (const char* name :
       {"embedding/weight", "positions/weight", "blocks/0/attention/qkv/weight", "blocks/0/feed_forward/down/weight",
        "blocks/10/attention/qkv/weight", "blocks/10/feed_forward/down/weight", "final_norm/weight", "head/weight"}) {
    store.add(name, {1, 1});
  }
  store.allocate();
  store.allocate_gradients();
  std::string names;
  for (const auto& [name, value] : HealthMonitor<float>(store).report().figures()) names += name + " ";
  EXPECT_EQ(names,
            "embedding/grad_norm embedding/update_ratio positions/grad_norm positions/update_ratio "
            "blocks/0/grad_norm blocks/0/update_ratio blocks/0/attention_logit_max blocks/0/attention_entropy "
            "blocks/0/dead_units "
            "blocks/10/grad_norm blocks/10/update_ratio blocks/10/attention_logit_max blocks/10/attention_entropy "
            "blocks/10/dead_units "
            "final_norm/grad_norm final_norm/update_ratio head/grad_norm head/update_ratio ");
}

// Gradient (2, 3, 6): 7. Weights (3, 0, 4) moved to (3, 1.5, 2): a step of sqrt(1.5^2 + 2^2) = 2.5 from a length of 5.
// Where nothing moved the ratio is 0, even from nothing; something from nothing is infinitely more.
TEST(Health, gradient_norm_and_update_ratio_by_hand) {
  ParameterStore<float> store;
  store.add("embedding/weight", {2});
  store.add("blocks/0/a", {2});
  store.add("blocks/0/b", {1});
  store.add("final_norm/weight", {1});
  store.allocate();
  store.allocate_gradients();
  const auto set = [&](float* flat, std::initializer_list<float> values) {
    auto value = values.begin();
    for (const Parameter& p : store.parameters()) {
      for (Index i = 0; i < p.shape.size(); ++i) flat[p.offset + i] = *value++;
    }
  };
  set(store.mutable_values(), {0, 0, 3, 0, 4, 0});
  const HealthMonitor<float> monitor(store);
  set(store.mutable_values(), {0, 0, 3, 1.5f, 2, 0.5f});
  set(store.gradients(), {0, 0, 2, 3, 6, nan});
  auto figures = figures_of(monitor);
  EXPECT_EQ(figures["embedding/grad_norm"], 0.0);
  EXPECT_EQ(figures["embedding/update_ratio"], 0.0);
  EXPECT_EQ(figures["blocks/0/grad_norm"], 7.0);
  EXPECT_EQ(figures["blocks/0/update_ratio"], 0.5);
  EXPECT_TRUE(std::isnan(figures["final_norm/grad_norm"]));
  EXPECT_EQ(figures["final_norm/update_ratio"], std::numeric_limits<double>::infinity());
  EXPECT_EQ(figures.count("blocks/0/dead_units"), 0u) << "it has no feed-forward layer";
}

// Width 1, so that scores are q k. Keys (0, ln 3, 0, ln 4); the first query, 10 times the others, sees the first only.
//   sees 1: entropy 0;  1, 3 of 4: ln 4 - 3/4 ln 3;  1, 3, 1 of 5: ln 5 - 3/5 ln 3;
//   1, 3, 1, 4 of 9: ln 9 - 3/9 ln 3 - 4/9 ln 4
// Its hidden score of 10 ln 4 does not count.
TEST(Health, attention_by_hand) {
  const float ln3 = std::log(3.0f), ln4 = std::log(4.0f);
  const Tensor<float> q(Shape{1, 4, 1, 1}, {10, 1, 1, 1}), k(Shape{1, 4, 1, 1}, {0, ln3, 0, ln4});
  const double l3 = std::log(3.0), l4 = std::log(4.0), l5 = std::log(5.0), l9 = std::log(9.0);
  const double entropy = (0 + (l4 - 0.75 * l3) + (l5 - 0.6 * l3) + (l9 - l3 / 3 - 4 * l4 / 9)) / 4;
  for (const Form form : {Form::tiled, Form::textbook}) {
    const auto figures = attention_figures(form, q, k);
    EXPECT_NEAR(figures.largest, l4, 1e-6);
    EXPECT_NEAR(figures.entropy, entropy, 1e-6);
  }
}

// Both forms against plain loops in double, over several tiles and grouped heads; dropout changes no figure.
TEST(Health, attention_over_tiles_and_grouped_heads) {
  constexpr Index B = 2, T = 150, H = 4, D = 6;
  const auto q = random_tensor<float>({B, T, H, D}, 1, 2.0), k = random_tensor<float>({B, T, 2, D}, 2, 2.0);
  double largest = -1e300, entropy = 0.0;
  for (Index b = 0; b < B; ++b) {
    for (Index h = 0; h < H; ++h) {
      for (Index i = 0; i < T; ++i) {
        std::vector<double> scores;
        double sum = 0.0;
        for (Index j = 0; j <= i; ++j) {
          double s = 0.0;
          for (Index c = 0; c < D; ++c) s += q[((b * T + i) * H + h) * D + c] * k[((b * T + j) * 2 + h / 2) * D + c];
          scores.push_back(s / std::sqrt(6.0));
          largest = std::max(largest, scores.back());
          sum += std::exp(scores.back());
        }
        for (const double s : scores) entropy -= std::exp(s) / sum * (s - std::log(sum));
      }
    }
  }
  entropy /= B * H * T;
  ASSERT_GT(largest, 10.0);
  for (const Form form : {Form::tiled, Form::textbook}) {
    const auto figures = attention_figures(form, q, k);
    EXPECT_NEAR(figures.largest, largest, 1e-5);
    EXPECT_NEAR(figures.entropy, entropy, 1e-5);
    EXPECT_EQ(attention_figures(form, q, k, {.dropout = {.probability = 0.5}}), figures);
    for (const int threads : {1, 2, 3}) {
      const ThreadScope scope(threads);
      EXPECT_EQ(attention_figures(form, q, k), figures) << threads << " threads";
    }
  }
}

// Scale, mask and causal rule are those of the attention that is observed: both forms give the same figures.
TEST(Health, attention_with_other_options) {
  constexpr Index T = 150;
  const auto q = random_tensor<float>({2, T, 2, 4}, 1, 2.0), k = random_tensor<float>({2, T, 2, 4}, 2, 2.0);
  Mask mask(Shape{T, T});
  for (Index i = 0; i < T * T; ++i) mask[i] = i % 7 != 0 && i / T != 5;  // query 5 sees nothing
  const auto plain = attention_figures(Form::tiled, q, k);
  for (const AttentionOptions& options : {AttentionOptions{.scale = 0.125},
                                          {.causal = false},
                                          {.mask = std::as_const(mask).view()},
                                          {.causal = false, .mask = std::as_const(mask).view(), .scale = 2.0}}) {
    const auto tiled = attention_figures(Form::tiled, q, k, options);
    const auto textbook = attention_figures(Form::textbook, q, k, options);
    EXPECT_NEAR(tiled.largest, textbook.largest, 1e-5);
    EXPECT_NEAR(tiled.entropy, textbook.entropy, 1e-5);
    EXPECT_GT(std::abs(tiled.entropy - plain.entropy), 1e-3);
  }
}

// An update is all of its micro-batches: sequences together give the same bits as one by one.
TEST(Health, attention_over_micro_batches) {
  const auto q = random_tensor<float>({2, 5, 2, 4}, 1), k = random_tensor<float>({2, 5, 2, 4}, 2);
  const auto half = [](const Tensor<float>& x, Index which) {
    return Tensor<float>(Shape{1, 5, 2, 4}, x.span().subspan(static_cast<std::size_t>(which) * 40, 40));
  };
  for (const Form form : {Form::tiled, Form::textbook}) {
    OneBlock block(1);
    HealthMonitor<float> monitor(block.store);
    attend(block, monitor, form, half(q, 0), half(k, 0));
    attend(block, monitor, form, half(q, 1), half(k, 1));
    EXPECT_EQ(AttentionFigures(monitor), attention_figures(form, q, k));
  }
}

// Scores of (NaN), and of (0, +infinity): neither a maximum nor a mean hides them.
TEST(Health, attention_shows_what_is_not_finite) {
  for (const Form form : {Form::tiled, Form::textbook}) {
    const Tensor<float> one(Shape{1, 2, 1, 1}, {1, 1}), bad(Shape{1, 2, 1, 1}, {nan, 1}),
        large(Shape{1, 2, 1, 1}, {0, inf});
    auto figures = attention_figures(form, one, bad);
    EXPECT_TRUE(std::isnan(figures.largest));
    EXPECT_TRUE(std::isnan(figures.entropy));
    figures = attention_figures(form, one, large);
    EXPECT_EQ(figures.largest, std::numeric_limits<double>::infinity());
    EXPECT_TRUE(std::isnan(figures.entropy));
  }
}

// Eight units, two micro-batches of two tokens. Alive: a value in either batch, of either sign, just above 1e-6, NaN.
// Dead: 0, and what stays within 1e-6. 3 of 8 are dead.
TEST(Health, dead_units_by_hand) {
  OneBlock block(8);
  HealthMonitor<float> monitor(block.store);
  const Tensor<float> first(Shape{1, 2, 8}, {1, 0, 0, 0, 0, 0, 1e-6f, -9e-7f,  //
                                             0, 0, 0, 0, 0, 0, 0, 0}),
      second(Shape{1, 2, 8}, {0, 0, 0, 0, nan, 0, 0, 8e-7f,  //
                              0, -2, 0, 2e-6f, 0, -1e-5f, -1e-6f, 0});
  const Tensor<float> other(Shape{1, 8}, {1, 1, 1, 1, 1, 1, 1, 1});
  for (const Tensor<float>* h : {&first, &second}) {
    block.tape.reset();
    const Tape<float>::Watch watch(block.tape, monitor);
    const Tape<float>::Scope outer(block.tape, "blocks/0"), inner(block.tape, "feed_forward");
    linear(block.tape.variable(*h), block.tape.parameter(block.store, block.down), {});
    // Another product in that scope is not used.
    linear(block.tape.variable(Tensor<float>(Shape{1, 1, 8}, {1, 1, 1, 1, 1, 1, 1, 1})), block.tape.constant(other),
           {});
  }
  EXPECT_EQ(figures_of(monitor)["blocks/0/dead_units"], 3.0 / 8.0);
}

}  // namespace
}  // namespace handgrad
