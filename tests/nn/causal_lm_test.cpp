#include "handgrad/nn/causal_lm.h"

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <set>
#include <string>

#include "handgrad/config/validate.h"
#include "handgrad/core/errors.h"
#include "handgrad/core/parallel.h"
#include "handgrad/nn/kv_cache.h"
#include "handgrad/verify/gradient_check.h"
#include "support/gradient_test.h"

// Whole models: gradients of every parameter tensor, causality, the cache, both attentions, splits of a batch.

namespace handgrad {
namespace {

ModelConfig gpt_shape() {
  ModelConfig m;
  m.n_layers = 2, m.n_heads = 4, m.d_model = 16, m.context = 9, m.vocab_size = 11;
  m.norm = NormKind::layer, m.feed_forward = FeedForwardKind::gelu, m.position = PositionKind::learned, m.bias = true;
  return m;
}

ModelConfig llama_shape() {
  ModelConfig m;
  m.n_layers = 2, m.n_heads = 4, m.n_kv_heads = 2, m.d_model = 16, m.d_ff = 24, m.context = 9, m.vocab_size = 11;
  m.tie_embeddings = false;
  return m;
}

ModelConfig resolved(const ModelConfig& m) {
  Config config;
  config.model = m;
  return resolve(config).model;
}

std::vector<TokenId> tokens(Index count, std::uint64_t seed) {
  const Random random(seed, Stream::audit);
  std::vector<TokenId> ids;
  for (Index i = 0; i < count; ++i)
    ids.push_back(static_cast<TokenId>(random.below(static_cast<std::uint64_t>(i), 11)));
  return ids;
}

// Weights large enough for every non-linearity to matter.
template <class S>
CausalLm<S> model_of(const ModelConfig& m) {
  CausalLm<S> model(resolved(m));
  CausalLm<double> source(resolved(m));
  source.initialise(3);
  const Random random(4, Stream::audit);
  for (const Parameter& p : model.store().parameters()) {
    for (Index i = 0; i < p.shape.size(); ++i) {
      const auto n = static_cast<std::uint64_t>(p.offset + i);
      const double value = p.shape.rank() == 2 ? 15.0 * source.store().values()[p.offset + i]
                                               : source.store().values()[p.offset + i] + 0.2 * random.normal(n);
      model.store().mutable_values()[p.offset + i] = static_cast<S>(static_cast<float>(value));
    }
  }
  return model;
}

template <class S>
Var<S> loss_on(const CausalLm<S>& model, bool training, Tape<S>& tape) {
  const auto in = tokens(18, 1);
  auto targets = tokens(18, 2);
  targets[4] = -100;
  return model.loss(tape, {in, 2}, targets, {}, {.training = training, .seed = 5, .first_sample = 7});
}

// The loss; a tape that records also adds its gradient.
template <class S>
S loss_of(const CausalLm<S>& model, bool training, Tape<S>& tape) {
  const Var<S> loss = loss_on(model, training, tape);
  if (tape.recording()) tape.backward(loss);
  return loss.item();
}

// The loss of a model as a function under test.
template <class S>
class ModelLoss final : public verify::Subject<S> {
 public:
  explicit ModelLoss(const ModelConfig& m) : model_(model_of<S>(m)), training_(m.dropout > 0.0) {}
  ParameterStore<S>& store() override { return model_.store(); }
  Var<S> value(Tape<S>& tape) override {
    if (tape.recording()) model_.allocate_gradients();
    return loss_on(model_, training_, tape);
  }

 private:
  CausalLm<S> model_;
  bool training_;
};

void check_model(const ModelConfig& m) {
  const ThreadScope one(1);
  const verify::Subjects subjects{[&] { return std::make_unique<ModelLoss<double>>(m); },
                                  [&] { return std::make_unique<ModelLoss<std::complex<double>>>(m); }};
  GradientCheckOptions options{.entries = 16};
  // relu_squared is not smooth at 0; a small step avoids it.
  if (m.feed_forward == FeedForwardKind::relu_squared) options.difference_step = 1e-4;
  test::expect_proven(check_gradients(subjects, options), model_tolerances);

  ModelLoss<double> exact(m);
  ModelLoss<float> in_float(m);
  const double loss = verify::add_gradient(exact);
  EXPECT_NEAR(verify::add_gradient(in_float), loss, 1e-6 * loss);
  for (const auto& [tensor, error] : verify::float_gradient_errors(in_float.store(), exact.store())) {
    EXPECT_LE(error, model_tolerances.in_float) << tensor << " in float";
  }
}

}  // namespace

TEST(CausalLm, gradients_of_the_gpt_shape) { check_model(gpt_shape()); }
TEST(CausalLm, gradients_of_the_llama_shape) { check_model(llama_shape()); }
TEST(CausalLm, gradients_with_dropout_in_both_attentions) {
  ModelConfig m = gpt_shape();
  m.dropout = 0.2;
  check_model(m);
  m.attention = AttentionKind::explicit_form;
  check_model(m);
}
TEST(CausalLm, gradients_with_qk_norm_and_half_pairing) {
  ModelConfig m = llama_shape();
  m.qk_norm = true, m.rope_pairing = RopePairing::half, m.attention = AttentionKind::explicit_form;
  check_model(m);
}
TEST(CausalLm, gradients_of_the_other_options) {
  ModelConfig m = gpt_shape();
  m.position = PositionKind::sinusoidal, m.feed_forward = FeedForwardKind::gelu_tanh, m.norm = NormKind::rms;
  check_model(m);
  m.position = PositionKind::none, m.feed_forward = FeedForwardKind::relu_squared, m.bias = false;
  m.logits_budget_mb = 0;
  check_model(m);
}

TEST(CausalLm, explicit_and_tiled_attention_agree) {
  for (ModelConfig m : {gpt_shape(), llama_shape()}) {
    m.dropout = 0.3;
    std::vector<double> gradients[2];
    double losses[2];
    for (int i = 0; i < 2; ++i) {
      m.attention = i == 0 ? AttentionKind::tiled : AttentionKind::explicit_form;
      auto model = model_of<double>(m);
      model.store().allocate_gradients();
      Tape<double> tape;
      losses[i] = loss_of(model, true, tape);
      gradients[i].assign(model.store().gradients(), model.store().gradients() + model.store().flat_size());
    }
    EXPECT_NEAR(losses[0], losses[1], 1e-12 * losses[0]);
    for (std::size_t i = 0; i < gradients[0].size(); ++i) ASSERT_NEAR(gradients[0][i], gradients[1][i], 1e-12);
  }
}

// Both forms give the same numbers, so the test checks the names of the operations.
TEST(CausalLm, runs_the_attention_of_its_config) {
  struct Listener final : GraphObserver<double> {
    void after_forward(Graph<double>& graph, int id) override { operations.emplace(graph.node(id).operation); }
    void after_backward(Graph<double>&, int) override {}
    std::set<std::string> operations;
  };
  for (ModelConfig m : {gpt_shape(), llama_shape()}) {
    for (const bool tiled : {true, false}) {
      m.attention = tiled ? AttentionKind::tiled : AttentionKind::explicit_form;
      auto model = model_of<double>(m);
      model.store().allocate_gradients();
      Tape<double> tape;
      Listener listener;
      const Tape<double>::Watch watch(tape, listener);
      loss_of(model, true, tape);
      EXPECT_EQ(listener.operations.contains("causal_attention"), tiled);
      EXPECT_EQ(listener.operations.contains("softmax"), !tiled);
    }
  }
}

// Other tiles have another order of sums: the numbers differ only in their last bits.
TEST(CausalLm, attention_works_in_tiles_of_the_size_that_is_asked_for) {
  const auto model = model_of<float>(llama_shape());
  Tape<float> tape(false);
  const auto logits = [&](Index tile) {
    const Var<float> y = model.logits(tape, {tokens(9, 1)}, {.attention_tile = tile});
    return std::vector<float>(y.view().data, y.view().data + y.size());
  };
  const auto one = logits(0), same = logits(128), small = logits(2);
  EXPECT_EQ(one, same);
  EXPECT_NE(one, small);
  for (std::size_t i = 0; i < one.size(); ++i) EXPECT_NEAR(one[i], small[i], 1e-5f);
}

// The gaps between parameters in the flat buffer stay 0, since norms, checkpoints and updates include them.
TEST(CausalLm, initial_values_stay_within_their_parameters) {
  ModelConfig m = gpt_shape();
  m.d_model = 3, m.n_heads = 1, m.d_ff = 5, m.context = 3, m.vocab_size = 7;
  CausalLm<double> model(resolved(m));
  model.initialise(1);
  const auto& store = model.store();
  std::vector<bool> owned(static_cast<std::size_t>(store.flat_size()), false);
  bool odd = false;
  for (const Parameter& p : store.parameters()) {
    odd = odd || p.shape.size() % 2 == 1;
    for (Index i = 0; i < p.shape.size(); ++i) owned[static_cast<std::size_t>(p.offset + i)] = true;
  }
  EXPECT_TRUE(odd);
  for (std::size_t i = 0; i < owned.size(); ++i) {
    if (!owned[i]) {
      ASSERT_EQ(store.values()[i], 0.0) << i;
    }
  }
}

TEST(CausalLm, a_later_token_changes_no_earlier_logit) {
  for (const ModelConfig& m : {gpt_shape(), llama_shape()}) {
    const auto model = model_of<float>(m);
    auto ids = tokens(9, 1);
    Tape<float> tape(false);
    const Var<float> before = model.logits(tape, {ids});
    ids[6] = (ids[6] + 1) % 11;
    const Var<float> after = model.logits(tape, {ids});
    EXPECT_EQ(std::memcmp(before.view().data, after.view().data, 6 * 11 * sizeof(float)), 0);
    EXPECT_NE(std::memcmp(before.view().data + 66, after.view().data + 66, 11 * sizeof(float)), 0);
  }
}

TEST(CausalLm, cached_and_uncached_logits_agree_however_the_prompt_is_cut) {
  for (const PositionKind position :
       {PositionKind::rope, PositionKind::learned, PositionKind::sinusoidal, PositionKind::none}) {
    ModelConfig m = llama_shape();
    m.position = position, m.context = 12;
    for (const AttentionKind kind : {AttentionKind::tiled, AttentionKind::explicit_form}) {
      m.attention = kind;
      const auto model = model_of<float>(m);
      const auto ids = tokens(12, 6);
      Tape<float> tape(false);
      const Var<float> whole = model.logits(tape, {ids});
      for (const std::vector<Index>& cuts : {std::vector<Index>(12, 1), {12}, {5, 7}}) {
        KvCache<float> cache(model.config());
        Index at = 0;
        for (const Index count : cuts) {
          const std::span<const TokenId> part(ids.data() + at, static_cast<std::size_t>(count));
          const Var<float> logits = model.logits(tape, {part}, {.cache = &cache});
          for (Index i = 0; i < count * 11; ++i) {
            ASSERT_NEAR(logits.view().data[i], whole.view().data[at * 11 + i], 1e-5)
                << "token " << at << " + " << i / 11;
          }
          at += count;
        }
        EXPECT_EQ(cache.length(), 12);
        EXPECT_THROW(model.logits(tape, {std::span(ids.data(), 1)}, {.cache = &cache}), RangeError);
      }
    }
  }
}

TEST(CausalLm, evaluation_keeps_nothing) {
  const auto model = model_of<float>(gpt_shape());
  Tape<float> tape(false);
  const auto ids = tokens(18, 1);
  { const Var<float> logits = model.logits(tape, {ids, 2}); }
  EXPECT_EQ(tape.live_nodes(), 0);
}

TEST(CausalLm, dropout_is_off_in_evaluation) {
  ModelConfig m = gpt_shape();
  m.dropout = 0.5;
  const auto with = model_of<float>(m);
  m.dropout = 0.0;
  const auto without = model_of<float>(m);
  const auto ids = tokens(18, 1);
  Tape<float> tape(false);
  const Var<float> a = with.logits(tape, {ids, 2}), b = with.logits(tape, {ids, 2}), c = without.logits(tape, {ids, 2});
  const std::size_t bytes = static_cast<std::size_t>(a.size()) * sizeof(float);
  EXPECT_EQ(std::memcmp(a.view().data, b.view().data, bytes), 0);
  EXPECT_EQ(std::memcmp(a.view().data, c.view().data, bytes), 0);
  const Var<float> x = with.logits(tape, {ids, 2}, {.training = true, .first_sample = 1});
  const Var<float> y = with.logits(tape, {ids, 2}, {.training = true, .first_sample = 3});
  EXPECT_NE(std::memcmp(x.view().data, y.view().data, bytes), 0);
}

namespace {

// The elements that each dropout of a pass has dropped.
class DropoutPatterns final : public GraphObserver<float> {
 public:
  void after_forward(Graph<float>& graph, int id) override {
    const Node<float>& node = graph.node(id);
    if (std::string_view(node.operation) != "dropout") return;
    std::vector<bool> dropped;
    for (Index i = 0; i < node.shape.size(); ++i) dropped.push_back(graph.value(id)[i] == 0.0f);
    patterns[graph.scope_of(id)].push_back(dropped);
    ++count;
  }
  std::map<std::string, std::vector<std::vector<bool>>> patterns;
  int count = 0;
};

}  // namespace

TEST(CausalLm, every_dropout_of_every_layer_has_a_mask_of_its_own) {
  ModelConfig config = gpt_shape();
  config.dropout = 0.5, config.attention = AttentionKind::explicit_form;
  const auto model = model_of<float>(config);
  const auto ids = tokens(18, 1), targets = tokens(18, 2);
  Tape<float> tape;
  DropoutPatterns seen;
  const Tape<float>::Watch watch(tape, seen);
  model.loss(tape, {ids, 2}, targets, {}, {.training = true, .seed = 1});
  EXPECT_EQ(seen.count, 1 + 2 * 3);  // the embedding; attention, its output and the feed-forward of two layers
  // One mask for two places would drop the same elements of two arrays of one size. (A hidden probability is 0, too.)
  std::map<std::size_t, std::set<std::vector<bool>>> of_size;
  for (const auto& [scope, patterns] : seen.patterns) {
    for (const auto& pattern : patterns) {
      EXPECT_TRUE(of_size[pattern.size()].insert(pattern).second) << scope << " has the mask of another dropout";
    }
  }
}

TEST(CausalLm, rope_turns_by_the_theta_of_the_config) {
  const auto logits = [](double theta) {
    ModelConfig config = llama_shape();
    config.rope_theta = theta;
    const auto model = model_of<double>(config);
    const auto ids = tokens(9, 1);
    Tape<double> tape(false);
    const auto y = model.logits(tape, {ids});
    return std::vector<double>(y.view().data, y.view().data + y.size());
  };
  EXPECT_EQ(logits(10000.0), logits(ModelConfig().rope_theta));
  EXPECT_NE(logits(100.0), logits(10000.0));
}

TEST(CausalLm, a_tied_embedding_counts_once) {
  ModelConfig m = gpt_shape();
  const CausalLm<float> tied(resolved(m));
  m.tie_embeddings = false;
  const CausalLm<float> untied(resolved(m));
  EXPECT_EQ(untied.store().scalar_count() - tied.store().scalar_count(), 11 * 16);
  EXPECT_EQ(tied.product_elements(), untied.product_elements());
  EXPECT_EQ(tied.product_elements(), 11 * 16 + 2 * (16 * 48 + 16 * 16 + 2 * 16 * 64));
}

}  // namespace handgrad
