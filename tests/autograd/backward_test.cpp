#include "handgrad/core/parallel.h"
#include "handgrad/ops/ops.h"
#include "support/message.h"
#include "support/values.h"

// Results and refusals of backward().

namespace handgrad::test {
namespace {

using test::message_of;
using D = std::vector<double>;

Tensor<double> number(double x) { return Tensor<double>(Shape{1}, {x}); }

TEST(Backward, an_intermediate_with_two_users_is_walked_once) {
  Tape<double> tape;
  const auto a = tape.variable(number(2.0));
  const auto b = mul(a, a);
  tape.backward(add(b, mul(b, b)));
  EXPECT_EQ(gradient(a), D{36.0});  // (1 + 2 b) 2 a
}

TEST(Backward, a_second_walk_is_refused_until_reset) {
  Tape<double> tape;
  const auto a = tape.variable(number(2.0));
  const auto y = mul(a, a);
  tape.backward(y);
  EXPECT_NE(message_of<Error>([&] { tape.backward(y); }).find("a graph can be used once"), std::string::npos);
  EXPECT_EQ(gradient(a), D{4.0});
  tape.reset();
  const auto again = tape.variable(number(3.0));
  tape.backward(mul(again, again));
  EXPECT_EQ(gradient(again), D{6.0});
}

TEST(Backward, one_value_as_both_operands) {
  Tape<double> tape;
  const auto x = tape.variable(Tensor<double>({2, 2}, {1, 2, 3, 4}));
  tape.backward(sum(matmul(x, x.transpose(0, 1))));
  EXPECT_EQ(gradient(x), (D{8, 12, 8, 12}));  // both users add: 2 (1, 1) x
}

TEST(Backward, a_residual_taken_twice) {
  Tape<double> tape;
  const auto x = tape.variable(number(3.0));
  const auto y = add(x, x);
  tape.backward(add(y, x));
  EXPECT_EQ(gradient(x), D{3.0});
}

TEST(Backward, broadcast_operands_get_reduced_gradients) {
  Tape<double> tape;
  const auto column = tape.variable(Tensor<double>({2, 1}, {1, 2}));
  const auto row = tape.variable(Tensor<double>({1, 3}, {1, 2, 3}));
  tape.backward(sum(add(column, row)));
  EXPECT_EQ(column.gradient().shape, (Shape{2, 1}));
  EXPECT_EQ(gradient(column), (D{3, 3}));
  EXPECT_EQ(row.gradient().shape, (Shape{1, 3}));
  EXPECT_EQ(gradient(row), (D{2, 2, 2}));
}

TEST(Backward, two_axes_of_one_operand_are_reduced) {
  Tape<double> tape;
  Tensor<double> wide({2, 1, 4, 3});
  for (Index i = 0; i < wide.size(); ++i) wide[i] = static_cast<double>(i);
  const auto a = tape.variable(wide);
  const auto b = tape.variable(Tensor<double>({4, 1}, {1, 2, 3, 4}));
  tape.backward(sum(mul(a, b)));
  ASSERT_EQ(b.gradient().shape, (Shape{4, 1}));
  D sums;
  for (Index t = 0; t < 4; ++t) {
    double total = 0;
    for (Index n = 0; n < 2; ++n) {
      for (Index c = 0; c < 3; ++c) total += wide[(n * 4 + t) * 3 + c];
    }
    sums.push_back(total);
  }
  EXPECT_EQ(gradient(b), sums);
  EXPECT_EQ(a.gradient().shape, wide.shape());
}

TEST(Backward, a_scalar_and_a_bias) {
  Tape<double> tape;
  const auto factor = tape.variable(number(5.0));
  const auto pair = tape.variable(Tensor<double>({2}, {3, 4}));
  const auto bias = tape.variable(Tensor<double>({2}, {0, 1}));
  const auto x = tape.constant(random_tensor<double>({2, 3, 2}, 1));
  tape.backward(add(sum(mul(factor, pair)), sum(add(x, bias))));
  EXPECT_EQ(factor.gradient().shape, (Shape{1}));
  EXPECT_EQ(gradient(factor), D{7.0});
  EXPECT_EQ(gradient(pair), (D{5, 5}));
  EXPECT_EQ(gradient(bias), (D{6, 6}));
}

TEST(Backward, a_tensor_changed_after_the_forward_pass_changes_no_gradient) {
  Tape<double> tape;
  Tensor<double> x({2}, {1, 2});
  const auto v = tape.variable(x);
  const auto y = sum(mul(v, v));
  x[0] += 10;
  x[1] += 10;
  tape.backward(y);
  EXPECT_EQ(gradient(v), (D{2, 4}));
}

TEST(Backward, parameters_changed_after_they_were_read_are_refused) {
  ParameterStore<double> store;
  const ParameterId w = store.add("w", Shape{2});
  store.allocate();
  store.allocate_gradients();
  Tape<double> tape;
  const auto y = sum(mul(tape.parameter(store, w), tape.parameter(store, w)));
  store.mutable_values()[0] = 3.0;
  EXPECT_NE(message_of<Error>([&] { tape.backward(y); }).find("a parameter has changed"), std::string::npos);
  EXPECT_EQ(store.gradients()[0], 0.0);
}

TEST(Backward, parameters_add_to_the_gradients_of_their_store) {
  ParameterStore<double> store;
  const ParameterId w = store.add("w", Shape{2});
  store.allocate();
  store.mutable_values()[0] = 3.0;
  store.allocate_gradients();
  for (int step = 1; step <= 2; ++step) {
    Tape<double> tape;
    const auto tied = tape.parameter(store, w);
    tape.backward(sum(add(mul(tied, tied), tape.parameter(store, w))));  // two users of one weight
    EXPECT_EQ(store.gradients()[0], step * 7.0);
    EXPECT_EQ(store.gradients()[1], step * 1.0);
  }
  store.zero_gradients();
  EXPECT_EQ(store.gradients()[0], 0.0);
}

TEST(Backward, a_second_use_is_summed_apart_until_the_gradients_are_finished) {
  ParameterStore<double> store;
  const ParameterId other = store.add("other", Shape{3}), w = store.add("w", Shape{2});
  store.allocate();
  store.allocate_gradients();
  store.add_second_gradient(w);
  EXPECT_NE(store.second_gradient(w), nullptr);
  EXPECT_EQ(store.second_gradient(other), nullptr);
  const double* own = store.gradients() + store.parameter(w).offset;
  for (int step = 1; step <= 2; ++step) {
    Tape<double> tape;
    const auto late = scale(tape.parameter_second_use(store, w), 5.0);
    tape.backward(add(add(sum(tape.parameter(store, w)), sum(late)), sum(tape.parameter_second_use(store, other))));
    EXPECT_EQ(own[0], step * 1.0);
    EXPECT_EQ(store.second_gradient(w)[0], step * 5.0);
    EXPECT_EQ(store.gradients()[store.parameter(other).offset], step * 1.0);  // no second gradient
  }
  store.finish_gradients();
  EXPECT_EQ(own[1], 12.0);
  EXPECT_EQ(own[0], 12.0);
  EXPECT_EQ(store.second_gradient(w)[1], 0.0);
  store.zero_gradients();
  EXPECT_EQ(own[1], 0.0);
}

// A second gradient is larger than the tile in which it is filled.
TEST(Backward, zeroed_gradients_are_zero_everywhere) {
  ParameterStore<double> store;
  const Index size = 3 * elementwise_tile + 5;
  const ParameterId w = store.add("w", Shape{size});
  store.allocate();
  store.allocate_gradients();
  store.add_second_gradient(w);
  std::fill(store.gradients(), store.gradients() + size, 1.0);
  std::fill(store.second_gradient(w), store.second_gradient(w) + size, 2.0);
  store.zero_gradients();
  for (Index i = 0; i < size; ++i) {
    ASSERT_EQ(store.gradients()[i], 0.0) << i;
    ASSERT_EQ(store.second_gradient(w)[i], 0.0) << i;
  }
}

TEST(Backward, from_a_parameter_adds_to_its_gradient) {
  ParameterStore<double> store;
  const ParameterId w = store.add("w", Shape{2});
  store.allocate();
  store.allocate_gradients();
  for (int times = 1; times <= 2; ++times) {
    Tape<double> tape;
    tape.backward(tape.parameter(store, w), Tensor<double>({2}, {3.0, 4.0}));
    EXPECT_EQ(store.gradients()[0], 3.0 * times);
    EXPECT_EQ(store.gradients()[1], 4.0 * times);
  }
}

TEST(Backward, a_store_without_gradients_is_constant) {
  ParameterStore<double> store;
  const ParameterId w = store.add("w", Shape{2});
  store.allocate();
  Tape<double> tape;
  const auto y = sum(tape.parameter(store, w));
  EXPECT_THROW(tape.backward(y), Error);
  EXPECT_FALSE(store.has_gradients());
}

TEST(Backward, seeds_and_what_they_must_fit) {
  Tape<double> tape;
  const auto x = tape.variable(Tensor<double>({2, 2}, {1, 2, 3, 4}));
  const auto y = mul(x, x);
  EXPECT_NE(message_of<ShapeError>([&] { tape.backward(y); }).find("(2, 2)"), std::string::npos);
  EXPECT_THROW(tape.backward(y, Tensor<double>(Shape{4})), ShapeError);
  EXPECT_THROW(tape.backward(y.transpose(0, 1), Tensor<double>(Shape{2, 2})), ShapeError);
  tape.backward(y, Tensor<double>({2, 2}, {1, 0, 0, -1}));  // a refused call does not use up the graph
  EXPECT_EQ(gradient(x), (D{2, 0, 0, -8}));
}

TEST(Backward, from_part_of_a_value) {
  Tape<double> tape;
  const auto x = tape.variable(Tensor<double>({3}, {1, 2, 3}));
  tape.backward(mul(x, x).slice(0, 1, 1));
  EXPECT_EQ(gradient(x), (D{0, 4, 0}));
}

TEST(Backward, detach_shares_data_and_stops_the_gradient) {
  Tape<double> tape;
  const auto x = tape.variable(number(3.0));
  const auto y = mul(x, x);
  const auto constant = y.detach();
  EXPECT_EQ(constant.view().data, y.view().data);
  tape.backward(mul(x, constant));
  EXPECT_EQ(gradient(x), D{9.0});
  tape.reset();
  const auto z = tape.variable(number(3.0));
  EXPECT_THROW(tape.backward(z.detach()), Error);
}

TEST(Backward, gradients_of_intermediate_values_need_keep) {
  Tape<double> tape;
  const auto x = tape.variable(number(3.0));
  const auto kept = mul(x, x).keep();
  const auto lost = mul(kept, x);
  tape.backward(mul(lost, lost));
  EXPECT_EQ(gradient(kept), D{2 * 27.0 * 3.0});
  EXPECT_NE(message_of<Error>([&] { lost.gradient(); }).find("keep()"), std::string::npos);
  EXPECT_EQ(gradient(x), D{6 * 243.0});
}

TEST(Backward, sixty_diamonds_are_instant) {
  Tape<double> tape;
  const auto x = tape.variable(number(1.0));
  auto y = x;
  for (int i = 0; i < 60; ++i) y = add(y, y);
  tape.backward(y);
  EXPECT_EQ(y.item(), 0x1p60);
  EXPECT_EQ(gradient(x), D{0x1p60});
}

TEST(Backward, repeated_tokens_add_up_the_same_for_any_number_of_threads) {
  const std::vector<TokenId> few{0, 0, 2}, many(1000, 7);
  Tape<float> tape;
  const auto table = tape.variable(Tensor<float>(Shape{3, 1}));
  tape.backward(embedding(table, std::span<const TokenId>(few), Shape{3}), Tensor<float>({3, 1}, {0.2f, 0.3f, 0.5f}));
  EXPECT_EQ(gradient(table), (std::vector<float>{0.5f, 0.0f, 0.5f}));

  constexpr Index width = 200;  // several tiles of columns
  const Tensor<float> seed = random_tensor<float>({1000, width}, 4);
  std::vector<float> first;
  for (int repeat = 0; repeat < 100; ++repeat) {
    const int threads[] = {1, 2, 4};
    const ThreadScope scope(threads[repeat % 3]);
    tape.reset();
    const auto wide = tape.variable(Tensor<float>(Shape{9, width}));
    tape.backward(embedding(wide, std::span<const TokenId>(many), Shape{1000}), seed);
    const auto bits = gradient(wide);
    if (first.empty()) first = bits;
    ASSERT_TRUE(same_bits(bits, first)) << "repeat " << repeat;
  }
  tape.reset();
  const auto counted = tape.variable(Tensor<float>(Shape{9, width}));
  Tensor<float> ones(Shape{1000, width});
  ones.fill(1.0f);
  tape.backward(embedding(counted, std::span<const TokenId>(many), Shape{1000}), ones);
  const auto counts = gradient(counted);
  for (Index i = 0; i < 9 * width; ++i) ASSERT_EQ(counts[static_cast<std::size_t>(i)], i / width == 7 ? 1000.0f : 0.0f);
}

}  // namespace
}  // namespace handgrad::test
