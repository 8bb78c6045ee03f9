#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "handgrad/config/validate.h"
#include "handgrad/nn/causal_lm.h"
#include "handgrad/optim/optimizer.h"
#include "support/attention.h"

// A query that sees a single key gives it a probability of 1, whatever its score: the gradient of the score is exactly
// 0, in both forms of attention. AdamW would scale up a rounding error to whole steps.

namespace handgrad::test {
namespace {

template <class Form>
class SingleKey : public ::testing::Test {
 public:
  using S = typename Form::Scalar;

  static AttentionRun<S> run(const Shape& q, const Shape& kv, const AttentionOptions& options, Index tile) {
    AttentionRun<S> run(q, kv, kv);
    AttentionOptions own = options;
    own.query_tile = own.key_tile = tile;
    run.go([&](auto a, auto b, auto c) {
      return Form::tiled ? causal_attention(a, b, c, own) : explicit_attention(a, b, c, own);
    });
    return run;
  }
};
TYPED_TEST_SUITE(SingleKey, EveryAttention);

template <class S>
void expect_zero(const std::vector<S>& values, std::size_t begin, std::size_t end, const char* what) {
  for (std::size_t i = begin; i < end; ++i) EXPECT_EQ(values[i], S(0)) << what << "[" << i << "]";
}

TYPED_TEST(SingleKey, of_a_context_of_one) {
  for (const double dropout : {0.0, 0.5}) {
    const auto run = TestFixture::run({9, 1, 4, 33}, {9, 1, 2, 33}, {.dropout = {dropout, 3, 0, 0}}, 128);
    expect_zero(run.dq, 0, run.dq.size(), "dq");
    expect_zero(run.dk, 0, run.dk.size(), "dk");
  }
}

// The first query of a sequence. Every later one sees more.
TYPED_TEST(SingleKey, of_the_first_query) {
  for (const Index tile : {1, 2, 4, 128}) {
    for (const Index time : {5, 130}) {
      const auto run = TestFixture::run({1, time, 1, 17}, {1, time, 1, 17}, {}, tile);
      expect_zero(run.dq, 0, 17, "dq");
      EXPECT_NE(run.dq[17], 0);
    }
  }
}

// A mask leaves each query one key, late in its row.
TYPED_TEST(SingleKey, of_a_mask) {
  const Index time = 11;
  Mask mask({time, time});
  for (Index i = 0; i < time; ++i) mask[i * time + (i * 7 + 3) % time] = 1;
  for (const Index tile : {1, 3, 128}) {
    const auto run = TestFixture::run({2, time, 2, 19}, {2, time, 1, 19}, {.causal = false, .mask = mask.view()}, tile);
    expect_zero(run.dq, 0, run.dq.size(), "dq");
    expect_zero(run.dk, 0, run.dk.size(), "dk");
  }
}

// The 0 is a product, so an upstream gradient that is not finite propagates to query and key.
TYPED_TEST(SingleKey, lets_a_nan_show) {
  using Scalar = typename TestFixture::S;
  AttentionRun<Scalar> run({1, 1, 1, 3}, {1, 1, 1, 3}, {1, 1, 1, 3});
  run.seed[1] = std::numeric_limits<Scalar>::quiet_NaN();
  run.go([](auto q, auto k, auto v) {
    return TypeParam::tiled ? causal_attention(q, k, v, {}) : explicit_attention(q, k, v, {});
  });
  EXPECT_TRUE(std::isnan(run.dq[0]) && std::isnan(run.dk[0])) << run.dq[0] << " " << run.dk[0];
}

// Exact gradients of queries and keys are 0: no update moves them, however many there are.
TEST(SingleKeyOfAModel, leaves_queries_and_keys_alone) {
  for (const AttentionKind kind : {AttentionKind::tiled, AttentionKind::explicit_form}) {
    Config config;
    ModelConfig& m = config.model;
    m.n_layers = 2, m.n_heads = 2, m.d_model = 16, m.context = 1, m.vocab_size = 7, m.bias = true;
    m.attention = kind;
    CausalLm<float> model(resolve(config).model);
    model.initialise(3);
    ParameterStore<float>& store = model.store();
    store.allocate_gradients();
    AdamW<float> optimizer(store, {.weight_decay = 0.0});
    const Parameter& weight = *store.find("blocks/1/attention/qkv/weight");
    const Index scores = 2 * weight.shape[0] / 3 * weight.shape[1];
    const std::vector<float> before(store.values() + weight.offset,
                                    store.values() + weight.offset + weight.shape.size());
    const std::vector<TokenId> tokens{1, 2, 3, 4, 5, 6}, targets{2, 3, 4, 5, 6, 0};
    for (int step = 0; step < 3; ++step) {
      store.zero_gradients();
      Tape<float> tape;
      tape.backward(model.loss(tape, {tokens, 6}, targets, {}, {.training = true}));
      optimizer.step(store, 1e-2, 1.0);
    }
    const float* now = store.values() + weight.offset;
    for (Index i = 0; i < scores; ++i) ASSERT_EQ(now[i], before[static_cast<std::size_t>(i)]) << i;
    EXPECT_NE(now[scores], before[static_cast<std::size_t>(scores)]) << "values do learn";
  }
}

}  // namespace
}  // namespace handgrad::test
