#include "handgrad/ops/ops.h"

#include <fmt/format.h>

#include <limits>
#include <map>
#include <string>
#include <vector>

#include "handgrad/autograd/tape.h"
#include "misuse/refusal.h"
#include "support/operations.h"

// Every operation called with wrong arguments. Each refusal is an error of the documented type; its message starts with
// the operation's name and has the rule and the values.

namespace handgrad::misuse {
namespace {

std::vector<std::string> operation_headers() {
  std::vector<std::string> headers{"ops/ops.h"};
  for (const std::string& name : test::operation_names()) headers.push_back("ops/" + name + ".h");
  return headers;
}

// Every operation has a refusal below, or the test fails.
const Covers covers(operation_headers());

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr float infinity = std::numeric_limits<float>::infinity();

class OperationErrors : public ::testing::Test {
 protected:
  Var<float> value(const Shape& shape) { return tape.variable(Tensor<float>(shape)); }
  Var<float> foreign(const Shape& shape) { return other.variable(Tensor<float>(shape)); }

  /// The call throws an error of this very type, with the message "<operation>: <rule>".
  template <class Type, class Call>
  void refuses(const std::string& operation, const std::string& rule, Call call) {
    EXPECT_EQ(refusal<Type>(call), operation + ": " + rule);
    ++refusals[operation];
  }

  template <class Call>
  void refuses_rows(const std::string& operation, Call call) {
    refuses<ShapeError>(operation, "a value of rank 1 or more is needed, got (); reshape({1}) makes one",
                        [&] { call(value({})); });
    refuses<ShapeError>(operation,
                        "rows of adjacent elements are needed, got a transposed or sliced view (3, 2); make a copy "
                        "with contiguous()",
                        [&] {
                          call(value({2, 3}).transpose(0, 1));
                        });
  }

  template <class Call>
  void refuses_foreign(const std::string& operation, Call call) {
    refuses<Error>(operation, "the operands belong to different tapes", call);
  }

  /// `call` with each of `shapes` in turn replaced by an empty handle.
  template <class Call>
  void refuses_empty(const std::string& operation, const std::vector<Shape>& shapes, Call call) {
    for (std::size_t missing = 0; missing < shapes.size(); ++missing) {
      std::vector<Var<float>> operands;
      for (const Shape& shape : shapes) operands.push_back(value(shape));
      operands[missing] = none;
      refuses<Error>(operation, "operand " + std::to_string(missing) + " is an empty handle", [&] { call(operands); });
    }
  }

  void elementwise();
  void broadcasting();
  void products();
  void norms();
  void tables();
  void rope_positions();
  void losses();
  void attention();

  Tape<float> tape, other;
  const Var<float> none;
  const std::vector<TokenId> ids{0, 1};
  const std::vector<Index> positions{0, 1, 2, 3, 4, 5};
  std::map<std::string, int> refusals;  // of each operation
};

using Operands = const std::vector<Var<float>>&;

TEST_F(OperationErrors, of_every_operation_name_it_the_rule_and_the_values) {
  elementwise();
  broadcasting();
  products();
  norms();
  tables();
  rope_positions();
  losses();
  attention();
  for (const std::string& operation : test::operation_names()) {
    EXPECT_GT(refusals[operation], 0) << operation << " has no refusal here";
  }
}

void OperationErrors::elementwise() {
  const auto unary = [&](const std::string& operation, auto op) {
    refuses_empty(operation, {{2}}, [&](Operands x) { op(x[0]); });
    refuses_rows(operation, op);
  };
  unary("relu", [](auto x) { relu(x); });
  unary("relu_squared", [](auto x) { relu_squared(x); });
  unary("gelu", [](auto x) { gelu(x); });
  unary("gelu_tanh", [](auto x) { gelu_tanh(x); });
  unary("silu", [](auto x) { silu(x); });
  unary("scale", [](auto x) { scale(x, 0.5); });
  unary("dropout", [](auto x) { dropout(x, {0.5}); });
  for (const double probability : {1.0, -0.5, nan}) {
    refuses<RangeError>("dropout", fmt::format("the probability must be in [0, 1), got {}", probability),
                        [&] { dropout(value({2}), {probability}); });
  }
  refuses_empty("contiguous", {{2}}, [](Operands x) { contiguous(x[0]); });
  refuses_empty("sum", {{2}}, [](Operands x) { sum(x[0]); });
  refuses_empty("mean", {{2}}, [](Operands x) { mean(x[0]); });
  refuses_empty("softmax", {{2}}, [](Operands x) { softmax(x[0]); });
  refuses_empty("log_softmax", {{2}}, [](Operands x) { log_softmax(x[0]); });
  refuses<ShapeError>("softmax", "axis 2 is outside (2, 2)", [&] { softmax(value({2, 2}), 2); });
  refuses<ShapeError>("softmax", "axis -1 is outside ()", [&] { softmax(value({})); });
  refuses<ShapeError>("log_softmax", "axis -3 is outside (2, 2)", [&] { log_softmax(value({2, 2}), -3); });
  refuses<RangeError>("log_softmax", "row 0 has only -infinity, which has no distribution",
                      [&] { log_softmax(tape.constant(Tensor<float>({1}, {-infinity}))); });
}

void OperationErrors::broadcasting() {
  refuses_empty("add", {{2}, {2}}, [](Operands x) { add(x[0], x[1]); });
  refuses_empty("mul", {{2}, {2}}, [](Operands x) { mul(x[0], x[1]); });
  refuses_empty("swiglu", {{2}, {2}}, [](Operands x) { swiglu(x[0], x[1]); });
  refuses_empty("concat", {{2}, {2}}, [](Operands x) { concat(x[0], x[1], 0); });
  refuses_empty("masked_fill", {{2}}, [](Operands x) { masked_fill(x[0], MaskRef{}, 0.0); });
  refuses_foreign("add", [&] { add(value({2}), foreign({2})); });
  refuses_foreign("mul", [&] { mul(value({2}), foreign({2})); });
  refuses_foreign("swiglu", [&] { swiglu(value({2}), foreign({2})); });
  refuses_foreign("concat", [&] { concat(value({2}), foreign({2}), 0); });
  refuses<ShapeError>("add", "extents must be equal or 1, got (2) and (3)", [&] { add(value({2}), value({3})); });
  refuses<ShapeError>("mul", "extents must be equal or 1, got (2) and (3)", [&] { mul(value({2}), value({3})); });
  refuses<ShapeError>("swiglu", "gate and up must have the same shape, got (2) and (3)",
                      [&] { swiglu(value({2}), value({3})); });
  refuses_rows("swiglu", [](auto x) { swiglu(x, x); });
  refuses<ShapeError>("concat", "shapes must be equal but for axis 0, got (2, 2) and (2, 3)", [&] {
    concat(value({2, 2}), value({2, 3}), 0);
  });
  refuses<ShapeError>("concat", "axis 1 is outside (2)", [&] { concat(value({2}), value({2}), 1); });
  refuses<ShapeError>("masked_fill", "a mask is needed, got none", [&] { masked_fill(value({2}), MaskRef{}, 0.0); });
  const Mask three(Shape{3}), larger(Shape{3, 2});
  refuses<ShapeError>("masked_fill", "extents must be equal or 1, got (2) and (3)",
                      [&] { masked_fill(value({2}), three.view(), 0.0); });
  refuses<ShapeError>("masked_fill", "the mask must broadcast to (2), got (3, 2)",
                      [&] { masked_fill(value({2}), larger.view(), 0.0); });
}

void OperationErrors::products() {
  refuses_empty("matmul", {{2, 2}, {2, 2}}, [](Operands x) { matmul(x[0], x[1]); });
  refuses_empty("linear", {{2, 2}, {2, 2}}, [&](Operands x) { linear(x[0], x[1], none); });
  refuses_foreign("matmul", [&] { matmul(value({2, 2}), foreign({2, 2})); });
  refuses_foreign("linear", [&] { linear(value({1, 2}), foreign({2, 2}), none); });
  refuses_foreign("linear", [&] { linear(value({1, 2}), value({2, 2}), foreign({2})); });
  refuses<ShapeError>("matmul", "(..., M, K) and (..., K, N) are needed, got (2) and (2, 2)", [&] {
    matmul(value({2}), value({2, 2}));
  });
  refuses<ShapeError>("matmul", "(..., M, K) and (..., K, N) are needed, got (2, 3) and (2, 3)", [&] {
    matmul(value({2, 3}), value({2, 3}));
  });
  refuses<ShapeError>("matmul",
                      "one of the last two axes of a must have adjacent elements, got a view (3, 2, 2); make "
                      "a copy with contiguous()",
                      [&] {
                        matmul(value({2, 2, 3}).transpose(0, 2), value({2, 2}));
                      });
  refuses<ShapeError>("linear", "x (..., in), weight (out, in) and bias (out) are needed, got (5), (3, 2) and (3)",
                      [&] {
                        linear(value({5}), value({3, 2}), value({3}));
                      });
  refuses<ShapeError>("linear", "x (..., in), weight (out, in) and bias (out) are needed, got (2), (3, 2) and (2)",
                      [&] {
                        linear(value({2}), value({3, 2}), value({2}));
                      });
  refuses<ShapeError>("linear",
                      "rows of adjacent elements are needed, got a transposed or sliced view (3, 2); make a copy with "
                      "contiguous()",
                      [&] {
                        linear(value({2, 3}).transpose(0, 1), value({3, 2}), none);
                      });
}

void OperationErrors::norms() {
  refuses_empty("layer_norm", {{2, 2}, {2}}, [&](Operands x) { layer_norm(x[0], x[1], none); });
  refuses_empty("rms_norm", {{2, 2}, {2}}, [](Operands x) { rms_norm(x[0], x[1]); });
  refuses_foreign("layer_norm", [&] { layer_norm(value({1, 2}), foreign({2}), none); });
  refuses_foreign("rms_norm", [&] { rms_norm(value({1, 2}), foreign({2})); });
  const std::string rank = "a value of rank 1 or more is needed, got (); reshape({1}) makes one";
  const std::string rows =
      "rows of adjacent elements are needed, got a transposed or sliced view (3, 2); make a copy with contiguous()";
  refuses<ShapeError>("layer_norm", rank, [&] { layer_norm(value({}), value({1}), none); });
  refuses<ShapeError>("rms_norm", rank, [&] { rms_norm(value({}), value({1})); });
  refuses<ShapeError>("layer_norm", rows, [&] { layer_norm(value({2, 3}).transpose(0, 1), value({2}), none); });
  refuses<ShapeError>("rms_norm", rows, [&] { rms_norm(value({2, 3}).transpose(0, 1), value({2})); });
  refuses<ShapeError>(
      "rms_norm",
      "rows of adjacent elements are needed, got a transposed or sliced view (2, 1, 3); make a copy with "
      "contiguous()",
      [&] {
        rms_norm(value({3, 1, 2}).transpose(0, 2), value({3}));
      });
  refuses<ShapeError>("layer_norm", "weight and bias must be contiguous and (2), got (2) and (3) for x (2)",
                      [&] { layer_norm(value({2}), value({2}), value({3})); });
  refuses<ShapeError>("rms_norm", "weight must be contiguous and (2), got (3) for x (2)",
                      [&] { rms_norm(value({2}), value({3})); });
  refuses<RangeError>("layer_norm", "eps must be at least 0, got -1",
                      [&] { layer_norm(value({2}), value({2}), none, -1.0); });
  refuses<RangeError>("rms_norm", "eps must be at least 0, got nan", [&] { rms_norm(value({2}), value({2}), nan); });
}

void OperationErrors::tables() {
  const auto look_up = [&](const Shape& table, const std::vector<TokenId>& tokens, const Shape& shape) {
    return [=, this] { embedding(value(table), tokens, shape); };
  };
  refuses_empty("embedding", {{3, 2}}, [&](Operands x) { embedding(x[0], ids, {2}); });
  refuses_empty("embedding", {{3, 2}}, [&](Operands x) { embedding(x[0], {positions.data(), 1, 2}, 1); });
  refuses<ShapeError>("embedding", "a table (V, C) is needed, got (3)", look_up({3}, ids, {2}));
  refuses<ShapeError>("embedding", "one id per element of (3) is needed, got 2", look_up({3, 2}, ids, {3}));
  refuses<ShapeError>("embedding", "one id per element of (1) is needed, got 0", look_up({3, 2}, {}, {1}));
  refuses<RangeError>("embedding", "id 3 at index 1 is outside [0, 3)", look_up({3, 2}, {0, 3}, {2}));
  refuses<RangeError>("embedding", "id -1 at index 0 is outside [0, 3)", look_up({3, 2}, {-1}, {1}));
  const auto places = [&](PositionsRef at, Index batch) { return [=, this] { embedding(value({3, 2}), at, batch); }; };
  refuses<ShapeError>("embedding", "positions are needed, got none", places({}, 2));
  refuses<ShapeError>("embedding", "positions are needed, got none", places({positions.data(), 1, 0}, 2));
  refuses<ShapeError>("embedding", "positions of 1 or 2 sequences are needed, got 3",
                      places({positions.data(), 3, 2}, 2));
  refuses<ShapeError>("embedding", "the batch must be 1 or more, got -2", places({positions.data(), 1, 2}, -2));
  refuses<RangeError>("embedding", "id 3 at index 3 is outside [0, 3)", places({positions.data(), 1, 6}, 1));
}

void OperationErrors::rope_positions() {
  const auto make = [](Index width, double theta) {
    return [=] { RopeTable<float>(width, theta, RopePairing::half); };
  };
  refuses<ShapeError>("rope", "the head width must be even and above 0, got 3", make(3, 1e4));
  refuses<ShapeError>("rope", "the head width must be even and above 0, got 0", make(0, 1e4));
  refuses<RangeError>("rope", "theta must be above 0, got nan", make(2, nan));
  RopeTable<float> table(2, 10000.0, RopePairing::adjacent);
  const auto at = [&](const Shape& x, PositionsRef where) {
    return [=, this, &table] { rope(value(x), where, table); };
  };
  const Index* p = positions.data();
  refuses<RangeError>("rope", "the number of positions must be 0 or more, got -1", [&] { table.extend(-1); });
  refuses<RangeError>("rope", "position 0 is outside the table's [0, 0)", [&] { table.cosines(0); });
  refuses<RangeError>("rope", "position 0 is outside the table's [0, 0)", at({2, 3, 1, 2}, {p, 1, 3}));
  table.extend(3);
  refuses<RangeError>("rope", "position 3 is outside the table's [0, 3)", [&] { table.sines(3); });
  refuses<RangeError>("rope", "position -1 is outside the table's [0, 3)", [&] { table.sines(-1); });
  refuses_empty("rope", {{2, 3, 1, 2}}, [&](Operands x) { rope(x[0], {p, 1, 3}, table); });
  refuses<ShapeError>("rope", "positions are needed, got none", at({2, 3, 1, 2}, {}));
  refuses<RangeError>("rope", "position 3 is outside the table's [0, 3)", at({2, 3, 1, 2}, {p, 2, 3}));
  const std::string shape = "x (B, T, H, 2) with positions (T) or (B, T) is needed, got ";
  refuses<ShapeError>("rope", shape + "(2, 3, 1, 2) and (3, 2)", at({2, 3, 1, 2}, {p, 3, 2}));
  refuses<ShapeError>("rope", shape + "(2, 3, 2) and (1, 3)", at({2, 3, 2}, {p, 1, 3}));
  refuses<ShapeError>("rope", "heads (batch, time, head, width) with adjacent widths are needed, got (1, 2, 3, 2)",
                      [&] {
                        rope(value({1, 2, 2, 3}).transpose(2, 3), {p, 1, 2}, table);
                      });
  const RopeTable<float> taken = std::move(table);
  refuses<RangeError>("rope", "position 0 is outside the table's [0, 0)", at({2, 3, 1, 2}, {p, 1, 3}));
}

void OperationErrors::losses() {
  refuses_empty("cross_entropy", {{2, 3}}, [&](Operands x) { cross_entropy(x[0], ids); });
  refuses_empty("linear_cross_entropy", {{2, 2}, {3, 2}}, [&](Operands x) { linear_cross_entropy(x[0], x[1], ids); });
  refuses_foreign("linear_cross_entropy", [&] { linear_cross_entropy(value({2, 2}), foreign({3, 2}), ids); });
  refuses_rows("cross_entropy", [&](auto x) { cross_entropy(x, ids); });
  refuses<ShapeError>("linear_cross_entropy", "x (..., C) and weight (V, C) are needed, got (2, 2) and (3, 4)", [&] {
    linear_cross_entropy(value({2, 2}), value({3, 4}), ids);
  });
  refuses<ShapeError>("linear_cross_entropy", "a value of rank 1 or more is needed, got (); reshape({1}) makes one",
                      [&] {
                        linear_cross_entropy(value({}), value({3, 4}), ids);
                      });
  const auto both = [&](const std::string& rule, const std::vector<TokenId>& targets, const LossOptions& options,
                        auto type) {
    using Type = decltype(type);
    refuses<Type>("cross_entropy", rule, [&] { cross_entropy(value({2, 3}), targets, options); });
    refuses<Type>("linear_cross_entropy", rule, [&] {
      linear_cross_entropy(value({2, 3}), value({3, 3}), targets, options);
    });
  };
  const ShapeError shape("");
  const RangeError range("");
  both("one target per row is needed, got 0 for 2 rows", {}, {}, shape);
  both("one target per row is needed, got 3 for 2 rows", {0, 1, 2}, {}, shape);
  both("target 3 in row 1 is outside [0, 3)", {0, 3}, {}, range);
  both("target -1 in row 0 is outside [0, 3)", {-1, 0}, {}, range);
  both("label smoothing must be from 0 to 1, got 1.5", ids, {.label_smoothing = 1.5}, range);
  both("label smoothing must be from 0 to 1, got nan", ids, {.label_smoothing = nan}, range);
  both("divisor must be 0 or more, got -1", ids, {.divisor = -1}, range);
  both("slab_rows must be 0 or more, got -4", ids, {.slab_rows = -4}, range);
  both("logits_budget_bytes must be 0 or more, got -1", ids, {.logits_budget_bytes = -1}, range);
}

void OperationErrors::attention() {
  const std::string tiled = "causal_attention", explicit_form = "scaled_dot_product_attention";
  const Shape heads{1, 2, 1, 2};
  const auto both = [&](const std::string& rule, const AttentionOptions& options, auto type) {
    using Type = decltype(type);
    const Var<float> x = value({1, 2, 2, 2});
    refuses<Type>(tiled, rule, [&] { causal_attention(x, x, x, options); });
    refuses<Type>(explicit_form, rule, [&] { scaled_dot_product_attention(x, x, x, options); });
  };
  const Mask mask({5, 2, 2, 2});
  both("the mask must broadcast to the scores (1, 2, 2, 2), got (5, 2, 2, 2)", {.mask = mask.view()}, ShapeError(""));
  both("the dropout probability must be in [0, 1), got 1", {.dropout = {1.0}}, RangeError(""));
  both("the dropout probability must be in [0, 1), got nan", {.dropout = {nan}}, RangeError(""));
  both("query_tile must be 1 or more, got 0", {.query_tile = 0}, RangeError(""));
  both("key_tile must be 1 or more, got -1", {.key_tile = -1}, RangeError(""));
  const auto tiles = [&](const std::string& rule, const Shape& q, const Shape& k, const Shape& v) {
    refuses<ShapeError>(tiled, rule, [&] { causal_attention(value(q), value(k), value(v)); });
  };
  tiles("q, k and v must be heads of rank 4 (batch, time, head, width), got (2, 2), (1, 2, 1, 2) and (1, 2, 1, 2)",
        {2, 2}, heads, heads);
  tiles("q, k and v must have the same batch, got 1, 2 and 2", heads, {2, 2, 1, 2}, {2, 2, 1, 2});
  tiles("there must be one value per key, got 3 keys and 2 values", heads, {1, 3, 1, 2}, heads);
  tiles("k and v must have the same n_kv_heads, got 1 and 2", heads, heads, {1, 2, 2, 2});
  tiles("n_heads must be a multiple of n_kv_heads, got 1 and 2", heads, {1, 2, 2, 2}, {1, 2, 2, 2});
  tiles("q and k must have the same head width, got 2 and 4", heads, {1, 2, 1, 4}, heads);
  tiles("causal attention needs at least one key per query, got 3 queries and 2 keys", {1, 3, 1, 2}, heads, heads);
  const auto forms = [&](const std::string& rule, const Shape& q, const Shape& k, const Shape& v) {
    refuses<ShapeError>(explicit_form, rule, [&] { scaled_dot_product_attention(value(q), value(k), value(v)); });
  };
  forms("q, k and v must have two axes or more, got (2), (2, 2) and (2, 2)", {2}, {2, 2}, {2, 2});
  forms("q and k must have the same head width, got 2 and 3", {2, 2}, {2, 3}, {2, 2});
  forms("there must be one value per key, got 2 keys and 3 values", {2, 2}, {2, 2}, {3, 2});
  forms("causal attention needs at least one key per query, got 3 queries and 2 keys", {3, 2}, {2, 2}, {2, 2});
  forms("extents must be equal or 1, got (2, 1, 1) and (3, 1, 1)", {2, 2, 2}, {3, 2, 2}, {3, 2, 2});
  const auto turned = [&] { return value({2, 2, 3}).transpose(0, 2); };
  refuses<ShapeError>(
      explicit_form,
      "one of the last two axes of k must have adjacent elements, got a view (3, 2, 2); make a copy with "
      "contiguous()",
      [&] {
        scaled_dot_product_attention(value({3, 2, 2}), turned(), value({3, 2, 2}));
      });
  refuses<ShapeError>(tiled, "heads (batch, time, head, width) with adjacent widths are needed, got (1, 2, 1, 2)", [&] {
    causal_attention(value({1, 2, 1, 2}).transpose(1, 3), value(heads), value(heads));
  });
  const std::vector<Shape> three(3, heads);
  refuses_empty(tiled, three, [](Operands x) { causal_attention(x[0], x[1], x[2]); });
  refuses_empty(explicit_form, three, [](Operands x) { scaled_dot_product_attention(x[0], x[1], x[2]); });
  refuses_foreign(tiled, [&] { causal_attention(value(heads), foreign(heads), value(heads)); });
  refuses_foreign(explicit_form, [&] { scaled_dot_product_attention(value({2, 2}), foreign({2, 2}), value({2, 2})); });
}

}  // namespace
}  // namespace handgrad::misuse
