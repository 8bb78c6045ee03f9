#include "handgrad/core/gemm.h"

#include <complex>

#include "handgrad/core/parallel.h"
#include "support/values.h"

namespace handgrad::test {
namespace {

using gemm::block_rows;
using gemm::multiply;
using gemm::multiply_tiled;
using gemm::Operand;
using gemm::ProductTiles;
using gemm::Store;
using gemm::Transpose;

template <class S>
double tolerance() {
  return std::is_same_v<S, float> ? 2e-5 : 1e-12;
}

template <class S>
Operand<S> operand(const Tensor<S>& x, Transpose transpose) {
  return {x.rows(), transpose};
}

template <class S>
Tensor<S> stored(Index rows, Index cols, Transpose transpose, std::uint64_t seed) {
  return random_tensor<S>(transpose == Transpose::no ? Shape{rows, cols} : Shape{cols, rows}, seed);
}

template <class S>
S element(const Operand<S>& a, Index i, Index j) {
  return a.transpose == Transpose::no ? a.matrix.row(i)[j] : a.matrix.row(j)[i];
}

template <class S>
void expect_product(const Operand<S>& a, const Operand<S>& b, S factor, const Tensor<S>& start, Rows<const S> c) {
  for (Index i = 0; i < c.rows; ++i) {
    for (Index j = 0; j < c.cols; ++j) {
      double sum = start[i * c.cols + j];
      for (Index k = 0; k < a.cols(); ++k) {
        sum +=
            static_cast<double>(factor) * static_cast<double>(element(a, i, k)) * static_cast<double>(element(b, k, j));
      }
      ASSERT_NEAR(static_cast<double>(c.row(i)[j]), sum, tolerance<S>()) << i << ", " << j;
    }
  }
}

template <class S>
class Gemm : public ::testing::Test {};
using Scalars = ::testing::Types<float, double>;
TYPED_TEST_SUITE(Gemm, Scalars);

TYPED_TEST(Gemm, all_four_turns_assigned_and_added) {
  using S = TypeParam;
  const Index sizes[][3] = {{1, 1, 1}, {1, 7, 3}, {7, 1, 5}, {3, 5, 1}, {33, 17, 29}};
  for (const auto& [m, n, k] : sizes) {
    for (const Transpose ta : {Transpose::no, Transpose::yes}) {
      for (const Transpose tb : {Transpose::no, Transpose::yes}) {
        const Tensor<S> a = stored<S>(m, k, ta, 1), b = stored<S>(k, n, tb, 2), start = random_tensor<S>({m, n}, 3);
        Tensor<S> c = start.copy();
        multiply<S>(operand(a, ta), operand(b, tb), S(0.5), Store::add, c.rows());
        expect_product<S>(operand(a, ta), operand(b, tb), S(0.5), start, c.rows());
        c.fill(std::numeric_limits<S>::quiet_NaN());  // assign does not read the previous values
        multiply<S>(operand(a, ta), operand(b, tb), S(2), Store::assign, c.rows());
        expect_product<S>(operand(a, ta), operand(b, tb), S(2), Tensor<S>(Shape{m, n}), c.rows());
      }
    }
  }
}

TYPED_TEST(Gemm, tiles_blocks_and_inner_cuts_give_the_product) {
  using S = TypeParam;
  const Index m = 37, n = 23, k = 31;
  const ProductTiles cuts[] = {{4, 5, 0, 0}, {4, 5, 10, 0},    {100, 100, 7, 0},
                               {8, 8, 0, 6}, {5, 100, 12, 31}, {1, 1, 1, 1}};
  for (const Transpose ta : {Transpose::no, Transpose::yes}) {
    for (const Transpose tb : {Transpose::no, Transpose::yes}) {
      const Tensor<S> a = stored<S>(m, k, ta, 1), b = stored<S>(k, n, tb, 2), start = random_tensor<S>({m, n}, 3);
      for (const ProductTiles& tiles : cuts) {
        Tensor<S> c = start.copy();
        multiply_tiled<S>(operand(a, ta), operand(b, tb), S(0.5), Store::add, c.rows(), tiles);
        expect_product<S>(operand(a, ta), operand(b, tb), S(0.5), start, c.rows());
        c.fill(std::numeric_limits<S>::quiet_NaN());
        multiply_tiled<S>(operand(a, ta), operand(b, tb), S(1), Store::assign, c.rows(), tiles);
        expect_product<S>(operand(a, ta), operand(b, tb), S(1), Tensor<S>(Shape{m, n}), c.rows());
      }
    }
  }
}

TYPED_TEST(Gemm, part_of_a_larger_matrix_is_written_and_no_more) {
  using S = TypeParam;
  const Tensor<S> a = random_tensor<S>({5, 4}, 1), b = random_tensor<S>({4, 3}, 2);
  Tensor<S> c(Shape{9, 8});
  c.fill(S(7));
  const Rows<S> part = c.rows().slice(2, 5).columns(3, 3);
  multiply<S>({a.rows()}, {b.rows()}, S(1), Store::assign, part);
  expect_product<S>({a.rows()}, {b.rows()}, S(1), Tensor<S>(Shape{5, 3}), part);
  for (Index i = 0; i < 9; ++i) {
    for (Index j = 0; j < 8; ++j) {
      if (i < 2 || i >= 7 || j < 3 || j >= 6) {
        ASSERT_EQ(c.rows().row(i)[j], S(7));
      }
    }
  }
}

TYPED_TEST(Gemm, the_same_bits_for_any_number_of_threads) {
  using S = TypeParam;
  const Tensor<S> a = random_tensor<S>({300, 130}, 1), b = random_tensor<S>({130, 400}, 2);
  std::vector<S> one_tile, tiled;
  for (const int threads : {1, 2, 4}) {
    const ThreadScope scope(threads);
    Tensor<S> c(Shape{300, 400});
    multiply<S>({a.rows()}, {b.rows()}, S(1), Store::assign, c.rows());
    if (threads == 1) one_tile = elements(c.view());
    EXPECT_TRUE(same_bits(elements(c.view()), one_tile)) << "one product, " << threads << " threads";
    multiply_tiled<S>({a.rows()}, {b.rows()}, S(1), Store::assign, c.rows(), {.rows = 64, .cols = 96, .block = 100});
    if (threads == 1) tiled = elements(c.view());
    EXPECT_TRUE(same_bits(elements(c.view()), tiled)) << "tiles, " << threads << " threads";
  }
}

TYPED_TEST(Gemm, row_tiles_do_not_cross_blocks) {
  using S = TypeParam;
  // The result of a block depends on its rows only, so the bits of a batch are those of its parts.
  const Index block = 100, n = 150, k = 70;
  const Tensor<S> a = random_tensor<S>({3 * block, k}, 1), b = random_tensor<S>({k, n}, 2);
  const ProductTiles tiles{.rows = 64, .cols = 96, .block = block};
  Tensor<S> whole(Shape{3 * block, n}), parts(Shape{3 * block, n});
  multiply_tiled<S>({a.rows()}, {b.rows()}, S(1), Store::assign, whole.rows(), tiles);
  multiply_tiled<S>({a.rows().slice(0, block)}, {b.rows()}, S(1), Store::assign, parts.rows().slice(0, block), tiles);
  multiply_tiled<S>({a.rows().slice(block, 2 * block)}, {b.rows()}, S(1), Store::assign,
                    parts.rows().slice(block, 2 * block), tiles);
  EXPECT_TRUE(same_bits(elements(whole.view()), elements(parts.view())));
}

TYPED_TEST(Gemm, an_inner_cut_is_a_sum_over_blocks) {
  using S = TypeParam;
  const Index block = 64, m = 40, n = 30;
  const Tensor<S> dy = random_tensor<S>({3 * block, m}, 1), x = random_tensor<S>({3 * block, n}, 2);
  const ProductTiles tiles{.inner = block};
  Tensor<S> whole(Shape{m, n}), parts(Shape{m, n});
  multiply_tiled<S>({dy.rows(), Transpose::yes}, {x.rows()}, S(1), Store::add, whole.rows(), tiles);
  for (Index first : {Index{0}, block}) {
    const Index rows = first == 0 ? block : 2 * block;
    multiply_tiled<S>({dy.rows().slice(first, rows), Transpose::yes}, {x.rows().slice(first, rows)}, S(1), Store::add,
                      parts.rows(), tiles);
  }
  EXPECT_TRUE(same_bits(elements(whole.view()), elements(parts.view())));
}

TEST(GemmOfComplex, has_no_conjugate_in_it) {
  using C = std::complex<double>;
  const Tensor<C> a({1, 2}, {C(1, 2), C(0, 1)}), b({2, 1}, {C(3, -1), C(0, 1)});
  Tensor<C> c(Shape{1, 1});
  multiply<C>({a.rows()}, {b.rows()}, C(1), Store::assign, c.rows());
  EXPECT_EQ(c[0], C(4, 5));
  const Tensor<C> turned({2, 1}, {C(1, 2), C(0, 1)});
  multiply<C>({turned.rows(), Transpose::yes}, {b.rows()}, C(1), Store::add, c.rows());
  EXPECT_EQ(c[0], C(8, 10));
}

TEST(BlockRows, are_whole_sequences_of_at_least_256_rows) {
  EXPECT_EQ(block_rows(1), 256);
  EXPECT_EQ(block_rows(64), 256);
  EXPECT_EQ(block_rows(100), 300);
  EXPECT_EQ(block_rows(256), 256);
  EXPECT_EQ(block_rows(1000), 1000);
}

}  // namespace
}  // namespace handgrad::test
