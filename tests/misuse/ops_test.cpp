#include "handgrad/ops/ops.h"

#include <limits>

#include "handgrad/autograd/tape.h"
#include "misuse/refusal.h"

namespace handgrad::misuse {
namespace {

const Covers covers{"ops/add.h",         "ops/causal_attention.h",
                    "ops/concat.h",      "ops/cross_entropy.h",
                    "ops/contiguous.h",  "ops/dropout.h",
                    "ops/embedding.h",   "ops/gelu.h",
                    "ops/gelu_tanh.h",   "ops/layer_norm.h",
                    "ops/linear.h",      "ops/linear_cross_entropy.h",
                    "ops/log_softmax.h", "ops/masked_fill.h",
                    "ops/matmul.h",      "ops/mean.h",
                    "ops/mul.h",         "ops/ops.h",
                    "ops/relu.h",        "ops/relu_squared.h",
                    "ops/rms_norm.h",    "ops/rope.h",
                    "ops/scale.h",       "ops/scaled_dot_product_attention.h",
                    "ops/silu.h",        "ops/softmax.h",
                    "ops/sum.h",         "ops/swiglu.h"};

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

class MisuseOps : public ::testing::Test {
 protected:
  Var<float> value(const Shape& shape) { return tape.variable(Tensor<float>(shape)); }
  Var<float> foreign(const Shape& shape) { return other.variable(Tensor<float>(shape)); }

  Tape<float> tape, other;
  Var<float> none;
  const std::vector<TokenId> ids{0, 1};
};

TEST_F(MisuseOps, empty_handles) {
  EXPECT_REFUSED(Error, "relu: the first operand is an empty handle", relu(none));
  EXPECT_REFUSED(Error, "relu_squared: the first operand", relu_squared(none));
  EXPECT_REFUSED(Error, "gelu: the first operand", gelu(none));
  EXPECT_REFUSED(Error, "gelu_tanh: the first operand", gelu_tanh(none));
  EXPECT_REFUSED(Error, "silu: the first operand", silu(none));
  EXPECT_REFUSED(Error, "scale: the first operand", scale(none, 2.0));
  EXPECT_REFUSED(Error, "contiguous: the first operand", contiguous(none));
  EXPECT_REFUSED(Error, "sum: the first operand", sum(none));
  EXPECT_REFUSED(Error, "mean: the first operand", mean(none));
  EXPECT_REFUSED(Error, "dropout: the first operand", dropout(none, {0.5}));
  EXPECT_REFUSED(Error, "add: the first operand", add(none, none));
  EXPECT_REFUSED(Error, "mul: the first operand", mul(none, none));
  EXPECT_REFUSED(Error, "swiglu: the first operand", swiglu(none, none));
  EXPECT_REFUSED(Error, "value: an empty handle", add(value({1}), none));
  EXPECT_REFUSED(Error, "value: an empty handle", mul(value({2}), none));
  EXPECT_REFUSED(ShapeError, "there is no axis", softmax(none));
  EXPECT_REFUSED(ShapeError, "there is no axis", log_softmax(none));
  EXPECT_REFUSED(ShapeError, "there is no axis", concat(none, none, 0));
  EXPECT_REFUSED(ShapeError, "concat:", concat(value({2}), none, 0));
  EXPECT_REFUSED(ShapeError, "matmul:", matmul(none, none));
  EXPECT_REFUSED(ShapeError, "linear:", linear(none, none, none));
  EXPECT_REFUSED(ShapeError, "linear:", linear(value({2}), none, none));
  EXPECT_REFUSED(ShapeError, "layer_norm:", layer_norm(value({2}), none, none));
  EXPECT_REFUSED(ShapeError, "rms_norm:", rms_norm(value({2}), none));
  EXPECT_REFUSED(ShapeError, "attention:", causal_attention(none, none, none));
  EXPECT_REFUSED(ShapeError, "attention:", scaled_dot_product_attention(none, none, none));
  EXPECT_REFUSED(ShapeError, "there is no axis", embedding(none, ids, {2}));
  EXPECT_REFUSED(Error, "value: an empty handle", cross_entropy(none, ids));
  EXPECT_REFUSED(ShapeError, "linear_cross_entropy:", linear_cross_entropy(none, none, ids));
}

TEST_F(MisuseOps, operands_of_another_tape) {
  const auto apart = ": the operands belong to different tapes";
  EXPECT_REFUSED(Error, apart, add(value({2}), foreign({2})));
  EXPECT_REFUSED(Error, apart, mul(value({2}), foreign({2})));
  EXPECT_REFUSED(Error, apart, swiglu(value({2}), foreign({2})));
  EXPECT_REFUSED(Error, apart, concat(value({2}), foreign({2}), 0));
  EXPECT_REFUSED(Error, apart, matmul(value({2, 2}), foreign({2, 2})));
  EXPECT_REFUSED(Error, apart, linear(value({1, 2}), foreign({2, 2}), none));
  EXPECT_REFUSED(Error, apart, linear(value({1, 2}), value({2, 2}), foreign({2})));
  EXPECT_REFUSED(Error, apart, layer_norm(value({1, 2}), foreign({2}), none));
  EXPECT_REFUSED(Error, apart, rms_norm(value({1, 2}), foreign({2})));
  EXPECT_REFUSED(Error, apart, linear_cross_entropy(value({2, 2}), foreign({3, 2}), ids));
  EXPECT_REFUSED(Error, apart, causal_attention(value({1, 2, 1, 2}), foreign({1, 2, 1, 2}), value({1, 2, 1, 2})));
  EXPECT_REFUSED(Error, apart, scaled_dot_product_attention(value({2, 2}), foreign({2, 2}), value({2, 2})));
}

TEST_F(MisuseOps, shapes_that_do_not_fit) {
  const Var<float> scalar = value({}), turned = value({2, 3}).transpose(0, 1);
  const auto relu_like = [&](const std::string& name, auto op) {
    EXPECT_REFUSED(ShapeError, name + ": a value of rank 1 and above is needed, got ()", op(scalar));
    EXPECT_REFUSED(ShapeError, name + " (3, 2): its axes cannot be read as rows", op(turned));
  };
  relu_like("relu", [](auto x) { return relu(x); });
  relu_like("relu_squared", [](auto x) { return relu_squared(x); });
  relu_like("gelu", [](auto x) { return gelu(x); });
  relu_like("gelu_tanh", [](auto x) { return gelu_tanh(x); });
  relu_like("silu", [](auto x) { return silu(x); });
  relu_like("scale", [](auto x) { return scale(x, 0.5); });
  relu_like("dropout", [](auto x) { return dropout(x, {0.5}); });
  EXPECT_REFUSED(ShapeError, "add: extents must be equal or 1, got (2) and (3)", add(value({2}), value({3})));
  EXPECT_REFUSED(ShapeError, "mul: extents must be equal or 1", mul(value({2}), value({3})));
  EXPECT_REFUSED(ShapeError, "swiglu: gate and up have one shape", swiglu(value({2}), value({3})));
  EXPECT_REFUSED(ShapeError, "there is no axis 2", softmax(value({2, 2}), 2));
  EXPECT_REFUSED(ShapeError, "there is no axis -3", log_softmax(value({2, 2}), -3));
  EXPECT_REFUSED(ShapeError, "concat: shapes must be equal but for axis 0, got (2, 2) and (2, 3)",
                 concat(value({2, 2}), value({2, 3}), 0));
  EXPECT_REFUSED(ShapeError, "matmul: (..., M, K) and (..., K, N) are needed", matmul(value({2}), value({2, 2})));
  EXPECT_REFUSED(ShapeError, "matmul: (..., M, K) and (..., K, N)", matmul(value({2, 3}), value({2, 3})));
  EXPECT_REFUSED(ShapeError, "linear: x (..., in)", linear(value({5}), value({3, 2}), value({3})));
  EXPECT_REFUSED(ShapeError, "linear: x (..., in)", linear(value({2}), value({3, 2}), value({2})));
  EXPECT_REFUSED(ShapeError, "layer_norm: weight and bias", layer_norm(value({2}), value({2}), value({3})));
  EXPECT_REFUSED(ShapeError, "rms_norm: weight", rms_norm(value({2}), value({3})));
  EXPECT_REFUSED(ShapeError, "linear_cross_entropy: x (..., C)",
                 linear_cross_entropy(value({2, 2}), value({3, 4}), ids));
  EXPECT_REFUSED(ShapeError, "masked_fill:", masked_fill(value({2}), MaskRef{}, 0.0));
  const Mask mask(Shape{3});
  EXPECT_REFUSED(ShapeError, "masked_fill:", masked_fill(value({2}), mask.view(), 0.0));
}

TEST_F(MisuseOps, numbers_outside_their_range) {
  EXPECT_REFUSED(RangeError, "dropout: the probability lies in [0, 1), got 1", dropout(value({2}), {1.0}));
  EXPECT_REFUSED(RangeError, "dropout: the probability", dropout(value({2}), {-0.1}));
  EXPECT_REFUSED(RangeError, "dropout: the probability lies in [0, 1), got nan", dropout(value({2}), {nan}));
  EXPECT_REFUSED(RangeError, "layer_norm: eps must be at least 0, got -1",
                 layer_norm(value({2}), value({2}), none, -1.0));
  EXPECT_REFUSED(RangeError, "rms_norm: eps must be at least 0, got nan", rms_norm(value({2}), value({2}), nan));
  EXPECT_REFUSED(RangeError, "embedding: id 3 at index 1 is outside [0, 3)",
                 embedding(value({3, 2}), std::vector<TokenId>{0, 3}, {2}));
  EXPECT_REFUSED(RangeError, "embedding: id -1 at index 0", embedding(value({3, 2}), std::vector<TokenId>{-1}, {1}));
  EXPECT_REFUSED(ShapeError, "embedding: 2 ids do not fill (3)", embedding(value({3, 2}), ids, {3}));
  EXPECT_REFUSED(ShapeError, "embedding: 0 ids do not fill (1)", embedding(value({3, 2}), std::span<TokenId>{}, {1}));
  EXPECT_REFUSED(ShapeError, "embedding: a table (V, C) is needed", embedding(value({3}), ids, {2}));
  EXPECT_REFUSED(RangeError, "log_softmax: row 0 holds nothing but -infinity",
                 log_softmax(tape.constant(Tensor<float>({1}, {-std::numeric_limits<float>::infinity()}))));
}

TEST_F(MisuseOps, positions) {
  const std::vector<Index> places{0, 1, 2, 3, 4, 5};
  RopeTable<float> table(2, 10000.0, RopePairing::adjacent);
  EXPECT_REFUSED(ShapeError, "rope: pairs of features need an even head width, got 3",
                 RopeTable<float>(3, 1e4, RopePairing::half));
  EXPECT_REFUSED(ShapeError, "even head width, got 0", RopeTable<float>(0, 1e4, RopePairing::half));
  EXPECT_REFUSED(RangeError, "rope: theta is above 0, got nan", RopeTable<float>(2, nan, RopePairing::half));
  EXPECT_REFUSED(RangeError, "rope table: 0 positions or more are needed, got -1", table.extend(-1));
  EXPECT_REFUSED(RangeError, "rope: position 0 is outside the table's [0, 0)", table.cosines(0));
  const Var<float> x = value({2, 3, 1, 2});
  EXPECT_REFUSED(RangeError, "rope: position 0 is outside", rope(x, {places.data(), 1, 3}, table));
  table.extend(3);
  EXPECT_REFUSED(RangeError, "rope: position 3 is outside the table's [0, 3)", table.sines(3));
  EXPECT_REFUSED(RangeError, "position -1", table.sines(-1));
  EXPECT_REFUSED(RangeError, "rope: position", table.cosines(std::numeric_limits<Index>::max()));
  EXPECT_REFUSED(ShapeError, "rope: positions are needed, got none", rope(x, {}, table));
  EXPECT_REFUSED(ShapeError, "rope: x (B, T, H, 2)", rope(x, {places.data(), 3, 2}, table));
  EXPECT_REFUSED(ShapeError, "rope: x (B, T, H, 2)", rope(x, {places.data(), 0, 3}, table));
  EXPECT_REFUSED(ShapeError, "rope: x (B, T, H, 2)", rope(value({2, 3, 2}), {places.data(), 1, 3}, table));
  EXPECT_REFUSED(RangeError, "rope: position 3", rope(x, {places.data(), 2, 3}, table));
  EXPECT_REFUSED(ShapeError, "rope:", rope(none, {places.data(), 1, 3}, table));
  const RopeTable<float> taken = std::move(table);
  EXPECT_REFUSED(RangeError, "rope: position 0 is outside", rope(x, {places.data(), 1, 3}, table));
  const Var<float> rows = value({3, 2});
  EXPECT_REFUSED(ShapeError, "embedding: positions are needed, got none", embedding(rows, PositionsRef{}, 2));
  EXPECT_REFUSED(ShapeError, "embedding: positions of 3 sequences do not fit a batch of 2",
                 embedding(rows, {places.data(), 3, 2}, 2));
  EXPECT_REFUSED(ShapeError, "at least 1, got 0", embedding(rows, {places.data(), 1, 0}, 2));
  EXPECT_REFUSED(ShapeError, "embedding: positions of 1 sequences do not fit a batch of -2",
                 embedding(rows, {places.data(), 1, 2}, -2));
  EXPECT_REFUSED(RangeError, "embedding: id 3 at index 3", embedding(rows, {places.data(), 1, 6}, 1));
}

TEST_F(MisuseOps, losses) {
  const Var<float> logits = value({2, 3}), weight = value({3, 3});
  const auto both = [&](const std::string& words, std::span<const TokenId> targets, const LossOptions& options,
                        auto type) {
    using Type = decltype(type);
    EXPECT_REFUSED(Type, words, cross_entropy(logits, targets, options));
    EXPECT_REFUSED(Type, words, linear_cross_entropy(logits, weight, targets, options));
  };
  const ShapeError shape("");
  const RangeError range("");
  both("cross_entropy: one target a row is needed, got 0 for 2 rows", {}, {}, shape);
  both("got 3 for 2 rows", std::vector<TokenId>{0, 1, 2}, {}, shape);
  both("cross_entropy: target 3 in row 1 is outside [0, 3)", std::vector<TokenId>{0, 3}, {}, range);
  both("target -1 in row 0", std::vector<TokenId>{-1, 0}, {}, range);
  both("label smoothing lies in [0, 1], got 1.5", ids, {.label_smoothing = 1.5}, range);
  both("label smoothing lies in [0, 1], got nan", ids, {.label_smoothing = nan}, range);
  both("must be 0 or more, got -1", ids, {.divisor = -1}, range);
  both("must be 0 or more, got 0, -4, 67108864", ids, {.slab_rows = -4}, range);
  both("must be 0 or more", ids, {.logits_budget_bytes = -1}, range);
  EXPECT_REFUSED(ShapeError, "cross_entropy: a value of rank 1 and above", cross_entropy(value({}), ids));
}

TEST_F(MisuseOps, attention) {
  const Var<float> x = value({1, 2, 1, 2}), longer = value({1, 3, 1, 2});
  const auto both = [&](const std::string& words, const AttentionOptions& options, auto type) {
    using Type = decltype(type);
    EXPECT_REFUSED(Type, words, causal_attention(x, x, x, options));
    EXPECT_REFUSED(Type, words, scaled_dot_product_attention(x, x, x, options));
  };
  const Mask mask({5, 5});
  both("mask", {.mask = mask.view()}, ShapeError(""));
  both("probability lies in [0, 1), got 1", {.dropout = {1.0}}, RangeError(""));
  both("probability lies in [0, 1), got nan", {.dropout = {nan}}, RangeError(""));
  EXPECT_REFUSED(RangeError, "attention: tiles have at least 1 row and column, got 0 and 128",
                 causal_attention(x, x, x, {.query_tile = 0}));
  EXPECT_REFUSED(RangeError, "got 128 and -1", causal_attention(x, x, x, {.key_tile = -1}));
  EXPECT_REFUSED(ShapeError, "attention: causal needs as many keys as queries or more, got Q = 3 and K = 2",
                 causal_attention(longer, x, x));
  EXPECT_REFUSED(ShapeError, "attention: causal needs",
                 scaled_dot_product_attention(value({3, 2}), value({2, 2}), value({2, 2})));
  EXPECT_REFUSED(ShapeError, "H a multiple of H_kv", causal_attention(x, value({1, 2, 2, 2}), value({1, 2, 2, 2})));
  EXPECT_REFUSED(ShapeError, "attention: q (B, Q, H, D)", causal_attention(x, longer, x));
  EXPECT_REFUSED(ShapeError, "attention: q (..., Q, D)", scaled_dot_product_attention(x, x, value({1, 2, 3, 2})));
}

}  // namespace
}  // namespace handgrad::misuse
