#include "support/attention.h"

#include "handgrad/ops/ops.h"
#include "support/message.h"

namespace handgrad::test {
namespace {

using test::message_of;
using D = std::vector<double>;

// Heads of queries that share key heads: repeat, not tile.
D grouped(Index heads, Index key_heads, D* dv) {
  Tape<double> tape;
  Tensor<double> v(Shape{1, 1, key_heads, 1}), seed(Shape{1, 1, heads, 1});
  for (Index i = 0; i < key_heads; ++i) v[i] = 10.0 * static_cast<double>(i + 1);
  for (Index i = 0; i < heads; ++i) seed[i] = static_cast<double>(i + 1);
  const auto values = tape.variable(v);
  const auto y = causal_attention(tape.variable(random_tensor<double>({1, 1, heads, 1}, 1)),
                                  tape.variable(random_tensor<double>({1, 1, key_heads, 1}, 2)), values);
  const D forward = elements(y);
  tape.backward(y, seed);
  *dv = gradient(values);
  return forward;
}

TEST(AttentionNumbers, grouped_queries_repeat_key_heads) {
  D dv;
  EXPECT_EQ(grouped(4, 2, &dv), (D{10, 10, 20, 20}));
  EXPECT_EQ(dv, (D{3, 7}));
  EXPECT_EQ(grouped(8, 2, &dv), (D{10, 10, 10, 10, 20, 20, 20, 20}));
  EXPECT_EQ(dv, (D{10, 26}));
  EXPECT_EQ(grouped(6, 3, &dv), (D{10, 10, 20, 20, 30, 30}));
  EXPECT_EQ(dv, (D{3, 7, 11}));
  EXPECT_EQ(grouped(4, 1, &dv), (D{10, 10, 10, 10}));
  EXPECT_EQ(dv, (D{10}));
  EXPECT_EQ(grouped(4, 4, &dv), (D{10, 20, 30, 40}));
  EXPECT_EQ(dv, (D{1, 2, 3, 4}));
}

TEST(AttentionNumbers, scores_are_divided_by_the_root_of_the_head_width) {
  Tape<double> tape(false);
  const Tensor<double> q({1, 1, 1, 2}, {1, 1}), k({1, 2, 1, 2}, {1, 1, 0, 0}), v({1, 2, 1, 1}, {1, 0});
  const auto vq = tape.constant(q), vk = tape.constant(k), vv = tape.constant(v);
  for (const auto& y : {causal_attention(vq, vk, vv),
                        scaled_dot_product_attention(vq.reshape({1, 2}), vk.reshape({2, 2}), vv.reshape({2, 1}))}) {
    EXPECT_NEAR(y.view().data[0], 0.8044296825, 1e-10);
  }
  const double of_model = 1 / std::sqrt(8.0);  // four heads of width 2
  EXPECT_NEAR(causal_attention(vq, vk, vv, {.scale = of_model}).item(), 0.6697615493, 1e-10);
}

TYPED_TEST_SUITE(Attention, EveryAttention);

TYPED_TEST(Attention, output_lies_within_the_range_of_its_values) {
  using S = typename TypeParam::Scalar;
  Tape<S> tape(false);
  const auto q = tape.constant(random_tensor<S>({1, 17, 2, 4}, 1, 4.0)),
             k = tape.constant(random_tensor<S>({1, 17, 2, 4}, 2, 4.0)),
             v = tape.constant(random_tensor<S>({1, 17, 2, 3}, 3));
  const auto y = this->attend(q, k, v, {});
  for (Index h = 0; h < 2; ++h) {
    for (Index c = 0; c < 3; ++c) {
      S least = std::numeric_limits<S>::max(), most = -least;
      const auto values = elements(v.slice(2, h, 1).slice(3, c, 1));
      const auto outputs = elements(y.slice(2, h, 1).slice(3, c, 1));
      for (std::size_t t = 0; t < 17; ++t) {
        least = std::min(least, values[t]), most = std::max(most, values[t]);
        const S slack = S(8) * std::numeric_limits<S>::epsilon() * std::max(std::abs(least), std::abs(most));
        EXPECT_GE(outputs[t], least - slack);
        EXPECT_LE(outputs[t], most + slack);
      }
    }
  }
}

TYPED_TEST(Attention, a_changed_future_token_changes_no_earlier_bit) {
  using S = typename TypeParam::Scalar;
  const Index time = 17;
  const Tensor<S> q = random_tensor<S>({2, time, 2, 4}, 1), k = random_tensor<S>({2, time, 2, 4}, 2),
                  v = random_tensor<S>({2, time, 2, 4}, 3);
  const auto run = [&](const Tensor<S>& keys, const Tensor<S>& values) {  // of the first sequence
    Tape<S> tape(false);
    return elements(this->attend(tape.constant(q), tape.constant(keys), tape.constant(values), {}).slice(0, 0, 1));
  };
  const auto before = run(k, v);
  for (const Index changed : {Index{1}, Index{6}, Index{16}}) {
    Tensor<S> keys = k.copy(), values = v.copy();
    for (Index i = changed * 8; i < (changed + 1) * 8; ++i) keys[i] = S(1e30), values[i] = S(-1e30);
    const auto after = run(keys, values);
    const auto earlier = [&](const std::vector<S>& y) { return std::vector<S>(y.begin(), y.begin() + changed * 8); };
    EXPECT_TRUE(same_bits(earlier(before), earlier(after))) << changed;
    EXPECT_FALSE(same_bits(before, after));
  }
}

// A mask that hides keys 1 and 6 of 9 from all queries, and all keys from query 3.
Mask holes() {
  Mask mask(Shape{9, 9});
  for (Index i = 0; i < 9; ++i) {
    for (Index j = 0; j < 9; ++j) mask[i * 9 + j] = j != 1 && j != 6 && i != 3;
  }
  return mask;
}

TYPED_TEST(Attention, finite_garbage_in_hidden_keys_and_values_changes_no_bit) {
  using S = typename TypeParam::Scalar;
  const Mask mask = holes();
  const auto run = [&](S key, S value) {
    AttentionRun<S> made({1, 9, 2, 4}, {1, 9, 2, 4}, {1, 9, 2, 4});
    for (const Index hidden : {1, 6}) {
      for (Index i = hidden * 8; i < (hidden + 1) * 8; ++i) made.k[i] = key, made.v[i] = value;
    }
    made.go([&](auto q, auto k, auto v) { return this->attend(q, k, v, {.causal = false, .mask = mask.view()}); });
    return made;
  };
  const S largest = std::numeric_limits<S>::max();
  const auto clean = run(S(0), S(0));
  for (const auto& [key, value] :
       {std::pair<S, S>{S(3), S(-5)}, {S(1e30), S(1e30)}, {largest, S(1)}, {-largest, S(1e30)}}) {
    const auto dirty = run(key, value);
    EXPECT_TRUE(same_bits(clean.y, dirty.y)) << key << ", " << value;
    EXPECT_TRUE(same_bits(clean.dq, dirty.dq)) << key << ", " << value;
    EXPECT_TRUE(same_bits(clean.dk, dirty.dk)) << key << ", " << value;
    EXPECT_TRUE(same_bits(clean.dv, dirty.dv)) << key << ", " << value;
  }
  for (Index i = 0; i < 8; ++i) EXPECT_EQ(clean.y[static_cast<std::size_t>(3 * 8 + i)], S(0)) << "an empty row";
  for (Index i = 0; i < 8; ++i) EXPECT_EQ(clean.dq[static_cast<std::size_t>(3 * 8 + i)], S(0)) << "an empty row";
}

// Tiles of keys behind the last that a tile of queries sees are skipped, so that not even a NaN there is read.
TEST(AttentionTiled, tiles_in_the_future_are_not_read) {
  AttentionRun<double> made({1, 12, 1, 3}, {1, 12, 1, 3}, {1, 12, 1, 3});
  for (Index i = 9 * 3; i < 12 * 3; ++i) made.k[i] = made.v[i] = std::nan("");
  made.go([](auto q, auto k, auto v) { return causal_attention(q, k, v, {.query_tile = 4, .key_tile = 4}); });
  for (std::size_t i = 0; i < 8 * 3; ++i) {
    EXPECT_TRUE(std::isfinite(made.y[i])) << i;
    EXPECT_TRUE(std::isfinite(made.dq[i])) << i;
  }
  EXPECT_TRUE(std::isnan(made.y[9 * 3]));
}

TEST(AttentionTiled, values_whose_products_overflow_stay_hidden) {
  const Mask mask = holes();
  for (const float garbage : {0.0f, 3e38f}) {
    AttentionRun<float> run({1, 9, 2, 4}, {1, 9, 2, 4}, {1, 9, 2, 4});
    for (Index i = 8; i < 16; ++i) run.v[i] = garbage;
    run.go([&](auto q, auto k, auto v) {
      return causal_attention(q, k, v, {.causal = false, .mask = mask.view(), .query_tile = 4, .key_tile = 4});
    });
    for (const float g : run.dq) ASSERT_TRUE(std::isfinite(g)) << garbage;
    for (const float g : run.dk) ASSERT_TRUE(std::isfinite(g)) << garbage;
  }
  AttentionRun<float> run({1, 9, 2, 4}, {1, 9, 2, 4}, {1, 9, 2, 4});
  for (Index i = 64; i < 72; ++i) run.v[i] = 3e38f, run.seed[i] = 0.0f;  // the last token, which only it sees
  run.go([&](auto q, auto k, auto v) { return causal_attention(q, k, v, {.query_tile = 4, .key_tile = 4}); });
  for (const float g : run.dq) ASSERT_TRUE(std::isfinite(g));
}

TYPED_TEST(Attention, a_score_behind_a_mask_may_be_nan) {
  using S = typename TypeParam::Scalar;
  const Mask mask = holes();
  const auto run = [&](S key) {
    Tensor<S> k = random_tensor<S>({1, 9, 2, 4}, 2);
    for (const Index hidden : {1, 6}) {
      for (Index i = hidden * 8; i < (hidden + 1) * 8; ++i) k[i] = key;
    }
    Tape<S> tape(false);
    return elements(this->attend(tape.constant(random_tensor<S>({1, 9, 2, 4}, 1)), tape.constant(k),
                                 tape.constant(random_tensor<S>({1, 9, 2, 4}, 3)), {.mask = mask.view()}));
  };
  const auto clean = run(S(0));
  for (const S key :
       {std::numeric_limits<S>::quiet_NaN(), std::numeric_limits<S>::infinity(), -std::numeric_limits<S>::infinity()}) {
    EXPECT_TRUE(same_bits(clean, run(key))) << key;
  }
}

TYPED_TEST(Attention, a_visible_nan_is_passed_on) {
  using S = typename TypeParam::Scalar;
  for (const int operand : {0, 1, 2}) {
    Tensor<S> x[3] = {random_tensor<S>({1, 9, 1, 4}, 1), random_tensor<S>({1, 9, 1, 4}, 2),
                      random_tensor<S>({1, 9, 1, 4}, 3)};
    x[operand][4 * 5] = std::numeric_limits<S>::quiet_NaN();
    Tape<S> tape(false);
    const auto y = elements(this->attend(tape.constant(x[0]), tape.constant(x[1]), tape.constant(x[2]), {}));
    EXPECT_TRUE(std::isnan(y[4 * 5])) << operand;
    if (operand < 2) {  // a NaN among the values may spoil its tile
      EXPECT_TRUE(std::isfinite(y[0])) << operand;
    }
  }
}

TYPED_TEST(Attention, shapes_that_do_not_fit_are_refused) {
  using S = typename TypeParam::Scalar;
  Tape<S> tape;
  const auto of = [&](const Shape& shape) { return tape.constant(Tensor<S>(shape)); };
  const auto x = of({1, 3, 2, 4});
  EXPECT_THROW(this->attend(x, of({1, 3, 2, 5}), x, {}), ShapeError);
  EXPECT_THROW(this->attend(x, x, of({1, 4, 2, 4}), {}), ShapeError);
  EXPECT_NE(message_of<ShapeError>([&] {
              this->attend(of({1, 4, 2, 4}), x, x, {});
            }).find("got 4 queries and 3 keys"),
            std::string::npos);
  EXPECT_NO_THROW(this->attend(of({1, 4, 2, 4}), x, x, {.causal = false}));
  const Mask wrong(Shape{3, 4}), larger(Shape{2, 1, 3, 3});
  EXPECT_THROW(this->attend(x, x, x, {.mask = wrong.view()}), ShapeError);
  EXPECT_THROW(this->attend(x, x, x, {.mask = larger.view()}), ShapeError);
}

TEST(AttentionTiled, takes_heads_only) {
  Tape<float> tape;
  const auto of = [&](const Shape& shape) { return tape.constant(Tensor<float>(shape)); };
  const auto q = of({2, 3, 4, 6});
  EXPECT_THROW(causal_attention(q, of({2, 3, 3, 6}), of({2, 3, 3, 6})), ShapeError);  // 4 is no multiple of 3
  EXPECT_THROW(causal_attention(q, of({1, 3, 4, 6}), of({1, 3, 4, 6})), ShapeError);
  EXPECT_THROW(causal_attention(q, of({2, 3, 2, 6}), of({2, 3, 4, 6})), ShapeError);
  EXPECT_THROW(causal_attention(of({3, 4, 6}), of({3, 4, 6}), of({3, 4, 6})), ShapeError);
  EXPECT_THROW(causal_attention(q, q, q, {.dropout = {.probability = 1.0}}), RangeError);
  EXPECT_THROW(causal_attention(q, q, q, {.key_tile = 0}), RangeError);
  EXPECT_THROW(scaled_dot_product_attention(q, q, q, {.dropout = {.probability = -0.1}}), RangeError);
}

}  // namespace
}  // namespace handgrad::test
