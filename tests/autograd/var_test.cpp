#include "handgrad/ops/ops.h"
#include "support/message.h"
#include "support/values.h"

// Handles: views of a value, and their lifetimes.

namespace handgrad::test {
namespace {

using test::message_of;
using D = std::vector<double>;

Tensor<double> counted(const Shape& shape) {
  Tensor<double> x(shape);
  for (Index i = 0; i < x.size(); ++i) x[i] = static_cast<double>(i);
  return x;
}

TEST(Var, slices_are_views_of_value_and_gradient) {
  Tape<double> tape;
  const auto x = tape.variable(counted({2, 3}));
  const auto part = x.slice(1, 1, 2);
  EXPECT_EQ(part.shape(), (Shape{2, 2}));
  EXPECT_EQ(elements(part), (D{1, 2, 4, 5}));
  EXPECT_EQ(part.view().data, x.view().data + 1);
  EXPECT_EQ(elements(x.slice(-2, 1, 1)), (D{3, 4, 5}));
  EXPECT_EQ(tape.nodes(), 1);
  tape.backward(sum(mul(part, part)));
  EXPECT_EQ(gradient(x), (D{0, 2, 4, 0, 8, 10}));
  EXPECT_EQ(gradient(part), (D{2, 4, 8, 10}));
}

TEST(Var, slices_outside_are_refused) {
  Tape<double> tape;
  const auto x = tape.constant(counted({2, 3}));
  EXPECT_EQ(message_of<RangeError>([&] { x.slice(1, 2, 2); }),
            "slice: 1 or more elements inside axis 1 of (2, 3) are needed, got 2 from 2 on");
  EXPECT_THROW(x.slice(1, -1, 1), RangeError);
  EXPECT_THROW(x.slice(1, 0, 0), RangeError);
  EXPECT_THROW(x.slice(0, 1, INT64_MAX), RangeError);
  EXPECT_THROW(x.slice(0, INT64_MAX, INT64_MAX), RangeError);
  EXPECT_THROW(x.slice(2, 0, 1), ShapeError);
}

TEST(Var, the_last_axis_splits_into_heads) {
  Tape<double> tape;
  const auto x = tape.variable(counted({2, 6}));
  const auto heads = x.split_last(3);
  EXPECT_EQ(heads.shape(), (Shape{2, 3, 2}));
  EXPECT_EQ(elements(heads), elements(x));
  EXPECT_EQ(elements(x.slice(1, 2, 4).split_last(2).slice(1, 1, 1)), (D{4, 5, 10, 11}));
  EXPECT_EQ(message_of<ShapeError>([&] { x.split_last(4); }), "split: axis -1 of (2, 6) cannot be read as (4, 1)");
  EXPECT_THROW(x.split_last(0), ShapeError);
  EXPECT_THROW(tape.constant(counted({1, 1, 1, 1, 1, 2})).split_last(2), ShapeError);
  EXPECT_THROW(tape.constant(counted({})).split_last(1), ShapeError);
}

TEST(Var, any_axis_splits_in_two) {
  Tape<double> tape;
  const auto x = tape.variable(counted({6, 2}));
  const auto split = x.split_axis(0, 2, 3);
  EXPECT_EQ(split.shape(), (Shape{2, 3, 2}));
  EXPECT_EQ(elements(split), elements(x));
  EXPECT_EQ(elements(split.transpose(0, 1).slice(0, 1, 1)), (D{2, 3, 8, 9}));
  EXPECT_EQ(elements(x.transpose(0, 1).split_axis(-1, 3, 2).slice(1, 1, 1)), (D{4, 6, 5, 7}));
  EXPECT_THROW(x.split_axis(0, 4, 2), ShapeError);
  EXPECT_THROW(x.split_axis(0, 2, 2), ShapeError);
  EXPECT_THROW(x.split_axis(0, -2, -3), ShapeError);
  EXPECT_THROW(x.split_axis(2, 1, 1), ShapeError);
}

TEST(Var, dense_values_are_read_under_another_shape) {
  Tape<double> tape;
  const auto x = tape.variable(counted({2, 6}));
  EXPECT_EQ(elements(x.reshape({3, 4}).slice(0, 1, 1)), (D{4, 5, 6, 7}));
  EXPECT_EQ(elements(x.slice(0, 1, 1).reshape({6})), (D{6, 7, 8, 9, 10, 11}));
  EXPECT_EQ(message_of<ShapeError>([&] { x.reshape({5}); }), "reshape: (2, 6) cannot be read as (5)");
  EXPECT_THROW(x.slice(1, 0, 3).reshape({6}), ShapeError);
  EXPECT_THROW(x.transpose(0, 1).reshape({12}), ShapeError);
}

TEST(Var, axes_are_exchanged_without_a_copy) {
  Tape<double> tape;
  const auto x = tape.variable(counted({2, 3}));
  const auto turned = x.transpose(0, -1);
  EXPECT_EQ(turned.shape(), (Shape{3, 2}));
  EXPECT_EQ(elements(turned), (D{0, 3, 1, 4, 2, 5}));
  EXPECT_EQ(turned.view().data, x.view().data);
  EXPECT_THROW(x.transpose(0, 2), ShapeError);
  EXPECT_THROW(gelu(turned), ShapeError);  // not rows of adjacent elements
  tape.backward(contiguous(turned), Tensor<double>({3, 2}, {1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(gradient(x), (D{1, 3, 5, 2, 4, 6}));
}

TEST(Var, item_takes_a_single_element) {
  Tape<double> tape;
  const auto x = tape.constant(counted({2, 3}));
  EXPECT_EQ(x.slice(0, 1, 1).slice(1, 2, 1).item(), 5.0);
  EXPECT_EQ(message_of<ShapeError>([&] { x.item(); }), "item: the value must have one element, got (2, 3)");
}

TEST(Var, handles_from_before_reset_are_refused) {
  Tape<double> tape;
  const auto x = tape.variable(counted({2}));
  const auto copy = x;
  tape.reset();
  EXPECT_NE(message_of<Error>([&] { x.view(); }).find("has been reset"), std::string::npos);
  EXPECT_THROW(x.item(), Error);
  EXPECT_THROW(x.gradient(), Error);
  EXPECT_THROW(copy.keep(), Error);
  EXPECT_THROW(add(x, x), Error);
  const auto fresh = tape.variable(counted({2}));
  EXPECT_THROW(add(fresh, x), Error);
  EXPECT_THROW(linear(fresh, fresh, x), Error);
  EXPECT_EQ(elements(fresh), (D{0, 1}));
  const auto stale = copy;  // copying and dropping one is legal
  EXPECT_EQ(stale.shape(), (Shape{2}));
}

TEST(Var, a_handle_may_outlive_its_tape) {
  Var<double> x, y;
  {
    Tape<double> tape;
    x = tape.variable(counted({2}));
    y = mul(x, x);
  }
  EXPECT_NE(message_of<Error>([&] { y.view(); }).find("tape is gone"), std::string::npos);
  EXPECT_THROW(add(x, y), Error);
  Tape<double> other;
  EXPECT_THROW(other.backward(y.slice(0, 0, 1)), Error);
}

TEST(Var, operands_of_two_tapes_are_refused) {
  Tape<double> one, two;
  const auto a = one.variable(counted({2})), b = two.variable(counted({2}));
  EXPECT_EQ(message_of<Error>([&] { add(a, b); }), "add: the operands belong to different tapes");
  const auto y = sum(b);
  EXPECT_THROW(one.backward(y), Error);
}

TEST(Var, empty_handles_are_refused) {
  Tape<double> tape;
  EXPECT_THROW(Var<double>().view(), Error);
  EXPECT_THROW(Var<double>().keep(), Error);
  EXPECT_THROW(sum(Var<double>()), Error);
  EXPECT_FALSE(Var<double>());
}

TEST(Tape, complex_values_are_never_recorded) {
  EXPECT_THROW(Tape<std::complex<double>>(true), Error);
  Tape<std::complex<double>> tape;
  EXPECT_FALSE(tape.recording());
  const auto x = tape.variable(Tensor<std::complex<double>>({1}, {{3.0, 1e-30}}));
  EXPECT_EQ(mul(x, x).item().imag() / 1e-30, 6.0);
  EXPECT_EQ(tape.live_nodes(), 1);
}

TEST(Tape, moves_and_its_handles_follow) {
  Tape<double> tape;
  const auto x = tape.variable(counted({2}));
  Tape<double> other(std::move(tape));
  other.backward(sum(mul(x, x)));
  EXPECT_EQ(gradient(x), (D{0, 2}));
  Tape<double> third;
  third = std::move(other);
  third.reset();
  EXPECT_THROW(x.view(), Error);
}

TEST(Tape, scopes_name_what_is_done) {
  Tape<double> tape;
  const auto x = tape.variable(counted({2}));
  Var<double> inside;
  {
    const Tape<double>::Scope block(tape, "blocks/3");
    const Tape<double>::Scope attention(tape, "attention");
    inside = mul(x, x);
  }
  EXPECT_EQ(tape.describe(inside), "blocks/3/attention/mul");
  EXPECT_EQ(tape.describe(add(x, x)), "add");
}

TEST(Tape, borrowed_memory_is_read_in_place) {
  Tape<double> tape;
  const Tensor<double> memory = counted({2, 2});
  const auto x = tape.borrow(memory.view());
  EXPECT_EQ(x.view().data, memory.data());
  EXPECT_EQ(elements(scale(x, 2.0)), (D{0, 2, 4, 6}));
}

}  // namespace
}  // namespace handgrad::test
