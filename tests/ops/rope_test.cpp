#include "handgrad/ops/ops.h"
#include "support/message.h"
#include "support/values.h"

namespace handgrad::test {
namespace {

using test::message_of;
using D = std::vector<double>;

template <class S>
RopeTable<S> table(Index width, RopePairing pairing, Index positions = 16, double theta = 10000.0) {
  RopeTable<S> made(width, theta, pairing);
  made.extend(positions);
  return made;
}

// One head of four features at one position.
D turned(const D& x, Index position, RopePairing pairing) {
  Tape<double> tape(false);
  const auto made = table<double>(static_cast<Index>(x.size()), pairing);
  const auto v =
      tape.constant(Tensor<double>(Shape{1, 1, 1, static_cast<Index>(x.size())}, std::span<const double>(x)));
  return elements(rope(v, {&position, 1, 1}, made));
}

double product(const D& a, const D& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

TEST(Rope, turns_adjacent_pairs) {
  const D y = turned({1, 2, 3, 4}, 3, RopePairing::adjacent);
  expect_near(y, D{-1.2722325127, -1.8388649851, 2.8786681004, 4.0881866356}, 1e-10);
  EXPECT_NEAR(std::sqrt(product(y, y)), 5.4772255751, 1e-10);
}

TEST(Rope, turns_pairs_of_halves) {
  const D y = turned({1, 2, 3, 4}, 3, RopePairing::half);
  expect_near(y, D{-1.4133525208, 1.8791180667, -2.8288574817, 4.0581911354}, 1e-10);
  EXPECT_NEAR(std::sqrt(product(y, y)), 5.4772255751, 1e-10);
}

TEST(Rope, scores_depend_on_the_difference_of_positions) {
  const D x{1, 2, 3, 4}, other{4, 3, 2, 1};
  for (const auto& [pairing, score] :
       {std::pair{RopePairing::adjacent, 1.1900512336}, {RopePairing::half, -3.4564292340}}) {
    EXPECT_NEAR(product(turned(x, 7, pairing), turned(other, 5, pairing)), score, 1e-10);
    EXPECT_NEAR(product(turned(x, 2, pairing), turned(other, 0, pairing)), score, 1e-10);
    for (Index shift = 0; shift < 14; ++shift) {
      EXPECT_NEAR(product(turned(x, shift + 2, pairing), turned(other, shift, pairing)), score, 1e-10);
    }
  }
}

TEST(Rope, keeps_norms_in_float) {
  for (const RopePairing pairing : {RopePairing::adjacent, RopePairing::half}) {
    Tape<float> tape(false);
    const auto made = table<float>(8, pairing);
    const auto x = tape.constant(random_tensor<float>({2, 5, 3, 8}, 1));
    const std::vector<Index> positions{0, 15, 3, 7, 1, 2, 2, 9, 14, 11};
    const auto before = elements(x), after = elements(rope(x, {positions.data(), 2, 5}, made));
    for (std::size_t head = 0; head < before.size(); head += 8) {
      double a = 0, b = 0;
      for (std::size_t i = head; i < head + 8; ++i) {
        a += static_cast<double>(before[i]) * static_cast<double>(before[i]);
        b += static_cast<double>(after[i]) * static_cast<double>(after[i]);
      }
      EXPECT_NEAR(b / a, 1.0, 1e-6);
    }
  }
}

TEST(Rope, of_all_heads_is_that_of_each_head) {
  for (const RopePairing pairing : {RopePairing::adjacent, RopePairing::half}) {
    Tape<double> tape(false);
    const auto made = table<double>(6, pairing);
    const auto x = tape.constant(random_tensor<double>({2, 4, 3, 6}, 1));
    const std::vector<Index> positions{4, 5, 6, 7};
    const auto whole = rope(x, {positions.data(), 1, 4}, made);
    for (Index h = 0; h < 3; ++h) {
      const auto head = rope(x.slice(2, h, 1), {positions.data(), 1, 4}, made);
      EXPECT_TRUE(same_bits(elements(head), elements(whole.slice(2, h, 1)))) << h;
    }
    const std::vector<Index> twice{4, 5, 6, 7, 4, 5, 6, 7};  // a row of positions for each sequence
    EXPECT_TRUE(same_bits(elements(rope(x, {twice.data(), 2, 4}, made)), elements(whole)));
    const std::vector<Index> zeros{0, 0, 0, 0};
    EXPECT_EQ(elements(rope(x, {zeros.data(), 1, 4}, made)), elements(x));
  }
}

TEST(Rope, positions_outside_the_table_are_refused) {
  Tape<double> tape(false);
  auto made = table<double>(4, RopePairing::adjacent, 16);
  const auto x = tape.constant(Tensor<double>({1, 1, 1, 4}, {1, 0, 1, 0}));
  const auto at = [&](Index position) { return elements(rope(x, {&position, 1, 1}, made)); };
  EXPECT_NO_THROW(at(15));
  EXPECT_EQ(message_of<RangeError>([&] { at(16); }), "rope: position 16 is outside the table's [0, 16)");
  EXPECT_THROW(at(1000), RangeError);
  EXPECT_THROW(at(-1), RangeError);
  EXPECT_THROW(at(INT64_MAX), RangeError);
  const D before = at(15);
  made.extend(17);
  EXPECT_EQ(made.positions(), 17);
  expect_near(at(16), D{-0.9576594803, -0.2879033167, std::cos(0.16), std::sin(0.16)}, 1e-10);
  EXPECT_EQ(at(15), before);
  made.extend(3);  // never shrinks
  EXPECT_EQ(made.positions(), 17);
}

TEST(Rope, angles_of_far_positions_are_exact_in_float) {
  const auto exact = table<double>(4, RopePairing::adjacent, 100001);
  const auto made = table<float>(4, RopePairing::adjacent, 100001);
  for (const Index p : {1, 1000, 65537, 100000}) {
    for (Index i = 0; i < 2; ++i) {
      EXPECT_NEAR(static_cast<double>(made.cosines(p)[i]), exact.cosines(p)[i], 6e-8);
      EXPECT_NEAR(static_cast<double>(made.sines(p)[i]), exact.sines(p)[i], 6e-8);
    }
  }
}

TEST(Rope, shapes_that_do_not_fit_are_refused) {
  EXPECT_NE(message_of<ShapeError>([] { RopeTable<float>(5, 10000.0, RopePairing::half); }).find("got 5"),
            std::string::npos);
  EXPECT_THROW(RopeTable<float>(0, 10000.0, RopePairing::half), ShapeError);
  EXPECT_THROW(RopeTable<float>(4, 0.0, RopePairing::half), RangeError);
  EXPECT_THROW(RopeTable<float>(4, std::nan(""), RopePairing::half), RangeError);
  Tape<double> tape;
  const auto made = table<double>(4, RopePairing::adjacent);
  const std::vector<Index> positions{0, 1, 2, 0, 1, 2, 0, 1, 2};
  const auto x = tape.constant(random_tensor<double>({2, 3, 1, 4}, 1));
  EXPECT_THROW(rope(x, {}, made), ShapeError);
  EXPECT_THROW(rope(x, {positions.data(), 1, 4}, made), ShapeError);
  EXPECT_THROW(rope(x, {positions.data(), 3, 3}, made), ShapeError);
  EXPECT_THROW(rope(x.slice(3, 0, 2), {positions.data(), 1, 3}, made), ShapeError);
  EXPECT_THROW(rope(x.reshape({6, 4}), {positions.data(), 1, 3}, made), ShapeError);
}

TEST(Rope, does_not_wait_for_the_caller_to_keep_positions) {
  Tape<double> tape;
  const auto made = table<double>(2, RopePairing::adjacent);
  std::vector<Index> positions{1};
  const auto x = tape.variable(Tensor<double>({1, 1, 1, 2}, {1, 0}));
  const auto y = rope(x, {positions.data(), 1, 1}, made);
  positions[0] = 9;
  tape.backward(y, Tensor<double>({1, 1, 1, 2}, {1, 0}));
  expect_near(gradient(x), D{std::cos(1.0), -std::sin(1.0)}, 1e-15);
}

}  // namespace
}  // namespace handgrad::test
