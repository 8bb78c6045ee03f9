#include "support/reference_test.h"

#include <gtest/gtest-spi.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <set>

#include "handgrad/ops/ops.h"
#include "support/attention.h"
#include "support/operations.h"

// Every operation and option against PyTorch, in double: forward passes and gradients.

namespace handgrad::test {
namespace {

Var<double> other(const Operands& x, const char* name) { return x[name] ? x[name] : x["a"]; }

Var<double> embed(const Operands& x, const ReferenceCase& c) {
  const Shape shape = c.shape("ids");
  if (c.integer("positions", 0) == 0) {
    const auto ids = c.tokens("ids");
    return embedding(x["table"], std::span<const TokenId>(ids), shape);
  }
  const auto ids = c.integers("ids");
  const Index batch = shape.rank() == 2 ? shape[0] : 1;
  return embedding(x["table"], PositionsRef{ids.data(), batch, shape[-1]}, c.integer("batch", batch));
}

Var<double> fill(const Operands& x, const ReferenceCase& c) {
  const Mask mask = c.mask("mask");
  return masked_fill(x["x"], mask.view(), c.number("value"));
}

Var<double> turn(const Operands& x, const ReferenceCase& c) {
  static std::vector<std::unique_ptr<RopeTable<double>>> tables;  // the backward pass needs them
  const auto positions = c.integers("positions");
  const Shape shape = c.shape("positions");
  const auto pairing = c.integer("half", 0) != 0 ? RopePairing::half : RopePairing::adjacent;
  tables.push_back(std::make_unique<RopeTable<double>>(x["x"].extent(-1), c.number("theta"), pairing));
  tables.back()->extend(*std::max_element(positions.begin(), positions.end()) + 1);
  return rope(x["x"], {positions.data(), shape.rank() == 2 ? shape[0] : 1, shape[-1]}, *tables.back());
}

template <class Attend>
Var<double> attend(const Operands& x, const ReferenceCase& c, AttentionOptions options, Attend attend_with) {
  const Mask mask = c.mask("mask");
  if (c.has("mask")) options.mask = mask.view();
  options.causal = c.integer("causal", 1) != 0;
  options.scale = c.number("scale", 0.0);
  options.dropout = c.dropout();
  return attend_with(x["q"], x["k"], x["v"], options);
}
Var<double> textbook(const Operands& x, const ReferenceCase& c) { return attend(x, c, {}, explicit_attention<double>); }
Var<double> tiled(const Operands& x, const ReferenceCase& c, Index query_tile, Index key_tile) {
  return attend(x, c, {.query_tile = query_tile, .key_tile = key_tile}, causal_attention<double>);
}

LossOptions loss_options(const ReferenceCase& c) {
  LossOptions options{.label_smoothing = c.number("smoothing")};
  options.ignore = static_cast<TokenId>(c.integer("ignore", -100));
  options.divisor = c.integer("divisor", 0);
  return options;
}

// The loss, after a check of its report.
template <class Loss>
Var<double> reported(const ReferenceCase& c, LossOptions options, Loss loss) {
  const auto targets = c.tokens("targets");
  LossSum report;
  options.report = &report;
  const Var<double> y = loss(targets, options);
  const Index count = count_targets(targets, options.ignore);
  EXPECT_EQ(report.targets, count);
  const double divisor = static_cast<double>(options.divisor > 0 ? options.divisor : std::max<Index>(count, 1));
  EXPECT_NEAR(report.sum / divisor, y.item(), 1e-13 * std::abs(y.item()));
  return y;
}
Var<double> head_loss(const Operands& x, const ReferenceCase& c, Index budget, Index slab) {
  LossOptions options = loss_options(c);
  options.logits_budget_bytes = budget, options.slab_rows = slab;
  return reported(c, options, [&](const auto& targets, const LossOptions& all) {
    return linear_cross_entropy(x["x"], x["weight"], std::span<const TokenId>(targets), all);
  });
}

}  // namespace

REFERENCE_TEST(add, all, "operations/add", [](auto& x, auto&) { return add(x["a"], other(x, "b")); })
REFERENCE_TEST(mul, all, "operations/mul", [](auto& x, auto&) { return mul(x["a"], other(x, "b")); })
REFERENCE_TEST(scale, all, "operations/scale", [](auto& x, auto& c) { return scale(x["x"], c.number("factor")); })
REFERENCE_TEST(sum, all, "operations/sum", [](auto& x, auto&) { return sum(x["x"]); })
REFERENCE_TEST(mean, all, "operations/mean", [](auto& x, auto&) { return mean(x["x"]); })
REFERENCE_TEST(contiguous, of_views, "operations/dense", [](auto& x, auto&) { return contiguous(x["x"]); })
REFERENCE_TEST(concat, all, "operations/concat",
               [](auto& x, auto& c) { return concat(x["a"], other(x, "b"), static_cast<int>(c.number("axis"))); })
REFERENCE_TEST(matmul, all, "operations/matmul",
               [](auto& x, auto& c) { return matmul(x["a"], x["b"], c.number("factor", 1.0)); })
REFERENCE_TEST(linear, all, "operations/linear", [](auto& x, auto&) { return linear(x["x"], x["weight"], x["bias"]); })
REFERENCE_TEST(embedding, all, "operations/embedding", embed)
REFERENCE_TEST(masked_fill, all, "operations/masked_fill", fill)

REFERENCE_TEST(gelu, all, "operations/gelu", [](auto& x, auto&) { return gelu(x["x"]); })
REFERENCE_TEST(gelu_tanh, all, "operations/gelu_tanh", [](auto& x, auto&) { return gelu_tanh(x["x"]); })
REFERENCE_TEST(silu, all, "operations/silu", [](auto& x, auto&) { return silu(x["x"]); })
REFERENCE_TEST(relu, all, "operations/relu", [](auto& x, auto&) { return relu(x["x"]); })
REFERENCE_TEST(relu_squared, all, "operations/relu_squared", [](auto& x, auto&) { return relu_squared(x["x"]); })
REFERENCE_TEST(swiglu, all, "operations/swiglu", [](auto& x, auto&) { return swiglu(x["gate"], x["up"]); })
REFERENCE_TEST(softmax, all, "operations/softmax",
               [](auto& x, auto& c) { return softmax(x["x"], static_cast<int>(c.number("axis", -1))); })
REFERENCE_TEST(log_softmax, all, "operations/log_softmax",
               [](auto& x, auto& c) { return log_softmax(x["x"], static_cast<int>(c.number("axis", -1))); })
REFERENCE_TEST(dropout, all, "operations/dropout", [](auto& x, auto& c) { return dropout(x["x"], c.dropout()); })
REFERENCE_TEST(layer_norm, all, "operations/layer_norm",
               [](auto& x, auto& c) { return layer_norm(x["x"], x["weight"], x["bias"], c.number("eps")); })
REFERENCE_TEST(rms_norm, all, "operations/rms_norm",
               [](auto& x, auto& c) { return rms_norm(x["x"], x["weight"], c.number("eps")); })
REFERENCE_TEST(rope, all, "operations/rope", turn)

REFERENCE_TEST(scaled_dot_product_attention, sizes, "attention/attention", textbook)
REFERENCE_TEST(scaled_dot_product_attention, masks, "attention/masks", textbook)
REFERENCE_TEST(causal_attention, sizes, "attention/attention", [](auto& x, auto& c) { return tiled(x, c, 128, 128); })
REFERENCE_TEST(causal_attention, sizes_in_tiles, "attention/attention",
               [](auto& x, auto& c) { return tiled(x, c, 2, 3); })
REFERENCE_TEST(causal_attention, sizes_in_tiles_of_one, "attention/attention",
               [](auto& x, auto& c) { return tiled(x, c, 1, 1); })
REFERENCE_TEST(causal_attention, masks, "attention/masks", [](auto& x, auto& c) { return tiled(x, c, 128, 128); })
REFERENCE_TEST(causal_attention, masks_in_tiles, "attention/masks", [](auto& x, auto& c) { return tiled(x, c, 2, 2); })

REFERENCE_TEST(cross_entropy, all, "losses/cross_entropy", [](auto& x, auto& c) {
  return reported(c, loss_options(c), [&](const auto& targets, const LossOptions& options) {
    return cross_entropy(x["logits"], std::span<const TokenId>(targets), options);
  });
})
REFERENCE_TEST(linear_cross_entropy, kept, "losses/linear_cross_entropy",
               [](auto& x, auto& c) { return head_loss(x, c, 1 << 20, 0); })
REFERENCE_TEST(linear_cross_entropy, kept_in_slabs, "losses/linear_cross_entropy",
               [](auto& x, auto& c) { return head_loss(x, c, 1 << 20, 2); })
REFERENCE_TEST(linear_cross_entropy, recomputed, "losses/linear_cross_entropy",
               [](auto& x, auto& c) { return head_loss(x, c, 0, 3); })

namespace {

std::string this_file() { return text_of(HANDGRAD_SOURCE_DIR "/tests/ops/reference_test.cpp"); }

}  // namespace

TEST(Reference, every_operation_has_values) {
  const std::string text = this_file();
  for (const std::string& name : operation_names()) {
    EXPECT_NE(text.find("REFERENCE_TEST(" + name + ","), std::string::npos) << name << " has no reference values";
  }
  EXPECT_GE(operation_names().size(), 27u);
}

TEST(Reference, no_value_is_left_unread) {
  const std::string text = this_file();
  for (const std::string file : {"operations", "attention", "losses"}) {
    for (const std::string& group : Reference(file + ".h5").names("")) {
      EXPECT_NE(text.find("\"" + file + "/" + group + "\""), std::string::npos) << file << "/" << group;
    }
  }
}

TEST(Reference, what_is_not_close_is_refused) {
  EXPECT_FATAL_FAILURE(Closeness(1e-12).expect({1.0, 2.0}, {1.0, 2.0 + 1e-11}, 0.0, "y"), "y at 1");
  EXPECT_FATAL_FAILURE(Closeness(1e-12).expect({std::nan("")}, {1.0}, 0.0, "y"), "y at 0");
  EXPECT_FATAL_FAILURE(Closeness(1e-12).expect({1.0}, {std::nan("")}, 0.0, "y"), "y at 0");
  EXPECT_FATAL_FAILURE(Closeness(1e-12).expect({1.0}, {HUGE_VAL}, 0.0, "y"), "y at 0");
  EXPECT_FATAL_FAILURE(Closeness(1e-12).expect({1e-300}, {0.0}, 0.0, "y"), "y at 0");
  EXPECT_FATAL_FAILURE(Closeness(1e-12).expect({1.0}, {1.0, 1.0}, 0.0, "y"), "y");
  Closeness(1e-12).expect({HUGE_VAL, 1.0, 0.0}, {HUGE_VAL, 1.0 + 1e-13, 0.0}, 0.0, "y");
}

// Every shape that can be broadcast to (B, H, Q, K): 2^r of each rank r, with and without the causal rule.
TEST(Reference, masks_of_every_shape_are_there) {
  const Reference reference("attention.h5");
  std::set<std::vector<Index>> shapes[2];
  for (const std::string& name : reference.names("masks")) {
    const Shape shape = reference.shape("masks/" + name + "/mask");
    const bool causal = reference.attribute("masks/" + name, "causal") != 0.0;
    shapes[causal].insert({shape.extents().begin(), shape.extents().end()});
  }
  EXPECT_EQ(shapes[0].size(), 31u);
  EXPECT_EQ(shapes[1].size(), 31u);
}

}  // namespace handgrad::test
