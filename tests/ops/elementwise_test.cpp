#include <functional>
#include <limits>

#include "handgrad/ops/ops.h"
#include "support/message.h"
#include "support/values.h"

namespace handgrad::test {
namespace {

template <class S>
constexpr S nan = std::numeric_limits<S>::quiet_NaN();

template <class S>
struct NamedOp {
  const char* name;
  std::function<Var<S>(Var<S>)> apply;
};

// Every operation of one operand that works element by element.
template <class S>
std::vector<NamedOp<S>> unary_operations() {
  return {
      {"relu", [](Var<S> x) { return relu(x); }},
      {"relu_squared", [](Var<S> x) { return relu_squared(x); }},
      {"silu", [](Var<S> x) { return silu(x); }},
      {"gelu", [](Var<S> x) { return gelu(x); }},
      {"gelu_tanh", [](Var<S> x) { return gelu_tanh(x); }},
      {"scale", [](Var<S> x) { return scale(x, 0.5); }},
      {"square", [](Var<S> x) { return mul(x, x); }},
      {"swiglu of itself", [](Var<S> x) { return swiglu(x, x); }},
      {"contiguous", [](Var<S> x) { return contiguous(x); }},
  };
}

template <class S>
class Elementwise : public ::testing::Test {
 public:
  struct Point {
    double y, slope;
  };
  static Point at(const NamedOp<S>& op, double x) {
    Tape<S> tape;
    const auto v = tape.variable(Tensor<S>({1}, {static_cast<S>(x)}));
    const auto y = op.apply(v);
    tape.backward(y);
    return {static_cast<double>(y.item()), static_cast<double>(gradient(v)[0])};
  }
  static NamedOp<S> named(const std::string& name) {
    for (const auto& op : unary_operations<S>()) {
      if (op.name == name) return op;
    }
    throw std::out_of_range(name);
  }
  static constexpr double exact = std::is_same_v<S, float> ? 3e-7 : 1e-15;
};
using Scalars = ::testing::Types<float, double>;
TYPED_TEST_SUITE(Elementwise, Scalars);

TYPED_TEST(Elementwise, nan_in_gives_nan_out) {
  using S = TypeParam;
  for (const auto& op : unary_operations<S>()) {
    Tape<S> tape(false);
    Tensor<S> x(Shape{40});  // for vector code and for the remainder
    for (const Index place : {Index{5}, Index{39}}) x[place] = nan<S>;
    const auto y = elements(op.apply(tape.constant(x)));
    for (std::size_t i = 0; i < 40; ++i) EXPECT_EQ(std::isnan(y[i]), i == 5 || i == 39) << op.name << " at " << i;
  }
  Tape<S> tape(false);
  const auto x = tape.constant(Tensor<S>({2}, {nan<S>, S(1)})), one = tape.constant(Tensor<S>({2}, {S(1), S(1)}));
  for (const auto& y : {add(x, one), add(one, x), mul(x, one), mul(one, x), swiglu(x, one), swiglu(one, x)}) {
    EXPECT_TRUE(std::isnan(elements(y)[0]));
    EXPECT_FALSE(std::isnan(elements(y)[1]));
  }
  EXPECT_TRUE(std::isnan(sum(x).item()) && std::isnan(mean(x).item()));
}

TYPED_TEST(Elementwise, nan_in_the_operand_gives_a_gradient_of_nan) {
  for (const char* name : {"relu_squared", "silu", "gelu", "gelu_tanh", "square"}) {
    EXPECT_TRUE(std::isnan(this->at(this->named(name), std::nan("")).slope)) << name;
  }
}

TYPED_TEST(Elementwise, known_values) {
  const auto near = [&](const char* name, double x, double y) {
    EXPECT_NEAR(this->at(this->named(name), x).y, y, 2 * this->exact * std::max(1.0, std::abs(y)))
        << name << " at " << x;
  };
  near("gelu", 1.0, 0.84134474606854293);
  near("gelu", -2.0, -0.045500263896358417);
  near("gelu", 0.0, 0.0);
  near("gelu_tanh", 1.0, 0.8411919906082768);
  near("gelu_tanh", -2.0, -0.04540230591222494);
  near("silu", 1.0, 0.73105857863000488);
  near("silu", -3.0, -0.14227761953270035);
  near("relu", -2.0, 0.0);
  near("relu", 2.5, 2.5);
  near("relu_squared", -2.0, 0.0);
  near("relu_squared", 2.5, 6.25);
}

TYPED_TEST(Elementwise, at_the_kink_the_slope_is_zero) {
  EXPECT_EQ(this->at(this->named("relu"), 0.0).slope, 0.0);
  EXPECT_EQ(this->at(this->named("relu"), 1e-30).slope, 1.0);
  EXPECT_EQ(this->at(this->named("relu_squared"), 0.0).slope, 0.0);
}

TYPED_TEST(Elementwise, large_numbers_have_the_slope_of_their_limit) {
  const double largest = static_cast<double>(std::numeric_limits<TypeParam>::max()) / 4;
  for (const char* name : {"silu", "gelu", "gelu_tanh"}) {
    for (const double x : {50.0, 1e4, 1e10, 1e15, 1e20, 1e30, 1e38, largest}) {
      if (x > largest) continue;
      const auto above = this->at(this->named(name), x), below = this->at(this->named(name), -x);
      EXPECT_NEAR(above.y / x, 1.0, 1e-6) << name << " of " << x;
      EXPECT_EQ(above.slope, 1.0) << name << " of " << x;
      EXPECT_NEAR(below.y, 0.0, 1e-15) << name << " of " << -x;
      EXPECT_NEAR(below.slope, 0.0, 1e-15) << name << " of " << -x;
    }
  }
}

TYPED_TEST(Elementwise, sums_are_accumulated_in_double) {
  using S = TypeParam;
  const Index n = 200000;
  Tensor<S> x(Shape{n});
  x.fill(S(0.1));
  Tape<S> tape(false);
  const double total = static_cast<double>(S(0.1)) * static_cast<double>(n);
  EXPECT_NEAR(static_cast<double>(sum(tape.constant(x)).item()) / total, 1.0, 1e-7);
  EXPECT_NEAR(static_cast<double>(mean(tape.constant(x)).item()), 0.1, 1e-8);
}

TEST(ElementwiseErrors, shapes_that_do_not_fit_are_refused) {
  Tape<float> tape;
  const auto of = [&](const Shape& shape) { return tape.constant(Tensor<float>(shape)); };
  EXPECT_THROW(add(of({2, 3}), of({2})), ShapeError);
  EXPECT_THROW(mul(of({2, 3}), of({3, 2})), ShapeError);
  EXPECT_THROW(swiglu(of({2, 3}), of({2, 1})), ShapeError);
  EXPECT_THROW(concat(of({2, 3}), of({3, 3}), 1), ShapeError);
  EXPECT_THROW(concat(of({2, 3}), of({2}), 0), ShapeError);
  EXPECT_THROW(concat(of({2, 3}), of({2, 3}), 2), ShapeError);
}

TEST(ElementwiseErrors, products_of_matrices_name_what_they_got) {
  using test::message_of;
  Tape<float> tape;
  const auto of = [&](const Shape& shape) { return tape.constant(Tensor<float>(shape)); };
  EXPECT_NE(message_of<ShapeError>([&] { matmul(of({2, 3}), of({2, 3})); }).find("(2, 3)"), std::string::npos);
  EXPECT_THROW(matmul(of({3}), of({3, 2})), ShapeError);
  EXPECT_THROW(matmul(of({2, 2, 3}), of({3, 3, 2})), ShapeError);
  EXPECT_THROW(matmul(of({2, 3, 4}).transpose(0, 2), of({2, 2})), ShapeError);  // no adjacent axis among the last two
  EXPECT_NE(message_of<ShapeError>([&] { linear(of({2, 3}), of({4, 2}), {}); }).find("(4, 2)"), std::string::npos);
  EXPECT_THROW(linear(of({2, 3}), of({4, 3}), of({3})), ShapeError);
  EXPECT_THROW(linear(of({2, 3}), of({3}), {}), ShapeError);
  EXPECT_THROW(linear_cross_entropy(of({2, 3}), of({4, 2}), std::vector<TokenId>{0, 1}), ShapeError);
}

TEST(ElementwiseErrors, ids_outside_the_table_are_named) {
  using test::message_of;
  Tape<float> tape;
  const auto table = tape.constant(Tensor<float>(Shape{5, 3}));
  const auto of = [&](std::vector<TokenId> ids) {
    return embedding(table, std::span<const TokenId>(ids), Shape{static_cast<Index>(ids.size())});
  };
  EXPECT_EQ(message_of<RangeError>([&] { of({0, 5}); }), "embedding: id 5 at index 1 is outside [0, 5)");
  EXPECT_EQ(message_of<RangeError>([&] { of({-1}); }), "embedding: id -1 at index 0 is outside [0, 5)");
  const std::vector<TokenId> ids{0, 1};
  EXPECT_THROW(embedding(table, std::span<const TokenId>(ids), Shape{3}), ShapeError);
  EXPECT_THROW(embedding(table.reshape({15}), std::span<const TokenId>(ids), Shape{2}), ShapeError);
  const std::vector<Index> positions{0, 5};
  EXPECT_THROW(embedding(table, PositionsRef{positions.data(), 1, 2}, 3), RangeError);
  EXPECT_THROW(embedding(table, PositionsRef{positions.data(), 2, 1}, 3), ShapeError);
}

TEST(Concat, is_undone_by_slices) {
  Tape<double> tape;
  const Tensor<double> a = random_tensor<double>({2, 3, 2}, 1), b = random_tensor<double>({2, 1, 2}, 2);
  const auto y = concat(tape.constant(a), tape.constant(b), 1);
  EXPECT_EQ(y.shape(), (Shape{2, 4, 2}));
  EXPECT_EQ(elements(y.slice(1, 0, 3)), elements(a.view()));
  EXPECT_EQ(elements(y.slice(1, 3, 1)), elements(b.view()));
}

}  // namespace
}  // namespace handgrad::test
