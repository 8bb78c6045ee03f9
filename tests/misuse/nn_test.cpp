#include <limits>

#include "handgrad/config/validate.h"
#include "handgrad/nn/causal_lm.h"
#include "handgrad/nn/kv_cache.h"
#include "handgrad/optim/optimizer.h"
#include "handgrad/optim/schedule.h"
#include "misuse/refusal.h"

namespace handgrad::misuse {
namespace {

const Covers covers{"nn/block.h",      "nn/causal_lm.h", "nn/causal_self_attention.h",
                    "nn/context.h",    "nn/norm.h",      "nn/feed_forward.h",
                    "nn/kv_cache.h",   "nn/linear.h",    "optim/optimizer.h",
                    "optim/schedule.h"};

constexpr double nan = std::numeric_limits<double>::quiet_NaN(), inf = std::numeric_limits<double>::infinity();

ModelConfig small(PositionKind position = PositionKind::rope) {
  Config config;
  ModelConfig& m = config.model;
  m.n_layers = 2, m.n_heads = 2, m.d_model = 8, m.context = 6, m.vocab_size = 5, m.position = position;
  return resolve(config).model;
}

TEST(MisuseNn, configs_that_are_not_whole) {
  const auto refused = [](const std::string& words, auto change) {
    ModelConfig config = small();
    change(config);
    ParameterStore<float> store;
    EXPECT_REFUSED(ConfigError, words, CausalLm<float>(config));
    EXPECT_REFUSED(ConfigError, words, KvCache<float>(config));
    EXPECT_REFUSED(ConfigError, words, CausalSelfAttention(store, "a", config, 0));
    EXPECT_REFUSED(ConfigError, words, FeedForward(store, "f", config, 0));
    EXPECT_REFUSED(ConfigError, words, Block(store, "b", config, 0));
  };
  refused("model.n_kv_heads: must be 1 or more in a resolved config, got 0", [](auto& m) { m.n_kv_heads = 0; });
  refused("model.n_heads: must be 1 or more in a resolved config, got 0", [](auto& m) { m.n_heads = 0; });
  refused("model.d_ff: must be 1 or more in a resolved config, got 0", [](auto& m) { m.d_ff = 0; });
  refused("model.d_model:", [](auto& m) { m.d_model = -8; });
  refused("model.context:", [](auto& m) { m.context = 0; });
  refused("model.n_layers:", [](auto& m) { m.n_layers = -1; });
  refused("model.n_heads must divide model.d_model", [](auto& m) { m.n_heads = 3; });
  refused("model.n_kv_heads must divide model.n_heads", [](auto& m) { m.n_heads = 4, m.n_kv_heads = 3; });
  ModelConfig config = small();
  config.vocab_size = 0;
  EXPECT_REFUSED(ConfigError, "model.vocab_size: must be 1 or more for a model, got 0", CausalLm<float>(config));
  EXPECT_REFUSED(ConfigError, "model.", CausalLm<float>(ModelConfig{}));
}

TEST(MisuseNn, layers) {
  ParameterStore<float> store;
  EXPECT_REFUSED(ShapeError, "every extent must be at least 1, got 0", Linear(store, "l", 0, 2, false));
  EXPECT_REFUSED(ShapeError, "got -1", Norm(store, "n", -1, NormKind::rms, false, 1e-5));
  const RopeTable<float>* const no_table = nullptr;
  const Linear linear(store, "linear", 2, 3, true);
  const Norm norm(store, "norm", 2, NormKind::rms, false, -1.0);
  EXPECT_REFUSED(Error, "parameter linear/weight: the name is taken", Linear(store, "linear", 2, 3, true));
  const CausalSelfAttention attention(store, "attention", small(), 0);
  const FeedForward feed_forward(store, "feed_forward", small(), 0);
  Tape<float> tape;
  const ForwardContext<float> context{.tape = tape, .store = store, .positions = {}};
  const Var<float> x = tape.variable(Tensor<float>(Shape{1, 2})), wide = tape.variable(Tensor<float>(Shape{1, 8}));
  EXPECT_REFUSED(Error, "its store has no memory yet; call allocate()", linear.forward(context, x));
  store.allocate();
  EXPECT_REFUSED(ShapeError, "linear:", linear.forward(context, wide));
  EXPECT_REFUSED(ShapeError, "linear:", linear.forward(context, {}));
  EXPECT_REFUSED(RangeError, "rms_norm: eps must be at least 0, got -1", norm.forward(context, x));
  EXPECT_REFUSED(ShapeError, "feed-forward layer: x (B, T, C) is needed, got (1, 8)",
                 feed_forward.forward(context, wide));
  EXPECT_REFUSED(ShapeError, "attention layer: x (B, T, C)", attention.forward(context, wide, no_table));
  EXPECT_REFUSED(Error, "attention layer: RoPE needs a table, got none",
                 attention.forward(context, tape.variable(Tensor<float>(Shape{1, 2, 8})), no_table));
  const ParameterStore<float> other;
  const ForwardContext<float> foreign{.tape = tape, .store = other, .positions = {}};
  EXPECT_REFUSED(RangeError, "there are 0 parameters", linear.forward(foreign, x));
}

TEST(MisuseNn, model) {
  CausalLm<float> model(small());
  model.initialise(1);
  Tape<float> tape(false);
  const std::vector<TokenId> tokens{0, 1, 2, 3}, large{0, 5}, many(7, 1);
  EXPECT_REFUSED(ShapeError, "model: 0 tokens cannot be a batch of 1 sequences", model.logits(tape, {}));
  EXPECT_REFUSED(ShapeError, "model: 4 tokens cannot be a batch of 3", model.logits(tape, {tokens, 3}));
  EXPECT_REFUSED(ShapeError, "model: 4 tokens cannot be a batch of 0", model.hidden(tape, {tokens, 0}));
  EXPECT_REFUSED(RangeError, "embedding: id 5 at index 1", model.last_logits(tape, {large}));
  EXPECT_REFUSED(RangeError, "model: 7 tokens after 0 exceed the context of 6", model.logits(tape, {many}));
  EXPECT_REFUSED(ShapeError, "linear_cross_entropy: one target per row is needed", model.loss(tape, {tokens}, {}));
  EXPECT_REFUSED(RangeError, "model: the attention tile must be 0 or more, got -1",
                 model.logits(tape, {tokens}, {.attention_tile = -1}));
  CausalLm<float> taken = std::move(model);
  EXPECT_REFUSED(RangeError, "parameter store: there are 0 parameters", model.logits(tape, {tokens}));
  EXPECT_EQ(taken.logits(tape, {tokens}).shape(), (Shape{1, 4, 5}));
}

TEST(MisuseNn, positions_of_another_batch) {
  const std::vector<TokenId> tokens{0, 1, 2, 3};
  const std::vector<Index> places{0, 1, 2, 3, 4, 9};
  for (const PositionKind kind :
       {PositionKind::rope, PositionKind::learned, PositionKind::sinusoidal, PositionKind::none}) {
    const CausalLm<float> model(small(kind));
    Tape<float> tape(false);
    const auto at = [&](const PositionsRef& positions) { return model.logits(tape, {tokens, 2, positions}); };
    EXPECT_REFUSED(ShapeError, "model: positions (2) or (2, 2) are needed, got (3, 2)", at({places.data(), 3, 2}));
    EXPECT_REFUSED(ShapeError, "got (1, 3)", at({places.data(), 1, 3}));
    EXPECT_REFUSED(ShapeError, "got (0, 2)", at({places.data(), 0, 2}));
    if (kind == PositionKind::none) continue;
    EXPECT_REFUSED(RangeError, "9", at({places.data() + 4, 1, 2}));
  }
}

TEST(MisuseNn, cache) {
  const ModelConfig config = small();
  KvCache<float> cache(config);
  const Tensor<float> heads(Shape{1, 2, 2, 4}), wide(Shape{1, 2, 2, 8}), two(Shape{2, 2, 2, 4}),
      many(Shape{1, 7, 2, 4});
  EXPECT_REFUSED(RangeError, "key/value cache: there are 2 layers, got layer 2",
                 cache.store(2, heads.heads(), heads.heads()));
  EXPECT_REFUSED(RangeError, "got layer -1", cache.store(-1, heads.heads(), heads.heads()));
  EXPECT_REFUSED(ShapeError, "keys and values (1, T, 2, 4) are needed, got (1, 2, 2, 8)",
                 cache.store(0, wide.heads(), heads.heads()));
  EXPECT_REFUSED(ShapeError, "got (2, 2, 2, 4)", cache.store(0, two.heads(), two.heads()));
  EXPECT_REFUSED(ShapeError, "keys and values", cache.store(0, heads.heads(), {}));
  EXPECT_REFUSED(ShapeError, "keys and values", cache.store(0, heads.heads(), many.heads()));
  EXPECT_REFUSED(RangeError, "7 tokens do not fit after 0 of 6", cache.store(0, many.heads(), many.heads()));
  EXPECT_REFUSED(RangeError, "the length must be 0 or more, got -1", cache.truncate(-1));
  EXPECT_REFUSED(RangeError, "7 tokens do not fit after 0 of 6", cache.advance(7));
  EXPECT_REFUSED(RangeError, "-1 tokens do not fit", cache.advance(-1));
  EXPECT_REFUSED(RangeError, "1 to 6 tokens can be read, got 7", cache.keys(0, 7));
  EXPECT_REFUSED(RangeError, "1 to 6 tokens can be read, got 0", cache.values(1, 0));
  EXPECT_REFUSED(RangeError, "got layer 5", cache.values(5, 1));
  const CausalLm<float> model(config);
  const std::vector<TokenId> tokens{0, 1};
  Tape<float> silent(false), recording;
  EXPECT_REFUSED(ShapeError, "and recording off", model.logits(recording, {tokens}, {.cache = &cache}));
  EXPECT_REFUSED(ShapeError, "needs a batch of one sequence", model.logits(silent, {tokens, 2}, {.cache = &cache}));
  const auto foreign = [&](auto change) {
    ModelConfig other = config;
    change(other);
    KvCache<float> of_another(other);
    EXPECT_REFUSED(ShapeError, "key/value cache: it must be made for this model, 2 layers, 2 key heads of width 4",
                   model.logits(silent, {tokens}, {.cache = &of_another}));
  };
  foreign([](auto& m) { m.n_layers = 1; });
  foreign([](auto& m) { m.n_layers = 3; });
  foreign([](auto& m) { m.n_kv_heads = 1; });
  foreign([](auto& m) { m.d_model = 16; });
  foreign([](auto& m) { m.context = 4; });
  const KvCache<float> taken = std::move(cache);
  EXPECT_REFUSED(ShapeError, "must be made for this model", model.logits(silent, {tokens}, {.cache = &cache}));
}

template <class Optimizer, class Options>
void expect_checked(const std::string& name, const std::vector<std::pair<std::string, Options>>& bad) {
  SCOPED_TRACE(name);
  ParameterStore<float> store, other, larger;
  store.add("w", {2}), other.add("v", {2}), larger.add("w", {3000});
  for (auto* s : {&store, &other, &larger}) s->allocate();
  for (const auto& [words, options] : bad) EXPECT_REFUSED(RangeError, words, Optimizer(store, options));
  Optimizer optimizer(store, {});
  EXPECT_REFUSED(Error, "optimizer: the store has no gradients; call allocate_gradients()",
                 optimizer.step(store, 0.1, 1.0));
  for (auto* s : {&store, &other, &larger}) s->allocate_gradients();
  EXPECT_REFUSED(Error, "the store must have the parameters of the constructor, got 1 from v (2) on",
                 optimizer.step(other, 0.1, 1.0));
  EXPECT_REFUSED(Error, "got 1 from w (3000) on", optimizer.step(larger, 0.1, 1.0));
  EXPECT_REFUSED(RangeError, "the rate must be finite and 0 or more, got nan", optimizer.step(store, nan, 1.0));
  EXPECT_REFUSED(RangeError, "got -0.1", optimizer.step(store, -0.1, 1.0));
  EXPECT_REFUSED(RangeError, "got inf", optimizer.step(store, inf, 1.0));
  EXPECT_REFUSED(RangeError, "the gradient scale must be finite, got nan", optimizer.step(store, 0.1, nan));
  EXPECT_EQ(optimizer.updates(), 0);
  EXPECT_EQ(store.values()[0], 0.0f);
  EXPECT_REFUSED(RangeError, "optimizer: there are", optimizer.state(2));
  EXPECT_REFUSED(RangeError, "the number of updates must be 0 or more, got -1", optimizer.set_updates(-1));
  const ParameterStore<float> taken = std::move(store);
  EXPECT_REFUSED(Error, "got none for 1 from w (2) on", optimizer.step(store, 0.1, 1.0));
}

TEST(MisuseOptim, optimizers) {
  expect_checked<AdamW<float>, AdamWOptions>("AdamW", {{"AdamW: beta1: must be in [0, 1), got 1", {1.0}},
                                                       {"AdamW: beta2", {0.9, nan}},
                                                       {"AdamW: eps", {0.9, 0.9, -1.0}},
                                                       {"AdamW: weight decay", {0.9, 0.9, 0.0, inf}}});
  expect_checked<Sgd<float>, SgdOptions>(
      "SGD", {{"SGD: momentum: must be in [0, 1), got -1", {-1.0}}, {"SGD: weight decay", {0.9, nan}}});
}

TEST(MisuseOptim, norm_and_schedule) {
  ParameterStore<float> store, empty;
  store.add("w", {2});
  EXPECT_REFUSED(Error, "gradient norm: the store has no gradients", gradient_norm(store));
  store.allocate();
  EXPECT_REFUSED(Error, "call allocate_gradients()", gradient_norm(store));
  EXPECT_EQ(gradient_norm(empty), 0.0);
  EXPECT_REFUSED(RangeError, "clipping: the norm must be 0 or more, got nan", clip_factor(1.0, nan));
  EXPECT_REFUSED(RangeError, "got -1", clip_factor(1.0, -1.0));
  EXPECT_REFUSED(RangeError, "schedule: the step must be 0 or more, got -1", Schedule{}.at(-1));
  EXPECT_EQ(Schedule{}.at(std::numeric_limits<Index>::max()), 0.0);
}

}  // namespace
}  // namespace handgrad::misuse
