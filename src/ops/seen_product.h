#pragma once

#include <cstdint>
#include <type_traits>
#include <vector>

#include "core/math.h"
#include "handgrad/core/buffer.h"
#include "handgrad/core/gemm.h"

// Products of attention in which some keys are hidden from some queries. A coefficient of 0 does not remove a hidden
// row from a product, because 0 times NaN or infinity is NaN.

namespace handgrad {

using gemm::multiply;
using gemm::Operand;
using gemm::Store;
using gemm::Transpose;

/// True if no element is NaN or infinite. It finds the largest exponent of 16 columns at a time, in a loop over rows
/// that the compiler can vectorise.
template <class S>
bool all_finite(Rows<const S> x) {
  if constexpr (is_complex_v<S>) {
    using R = typename S::value_type;
    return all_finite(Rows<const R>{reinterpret_cast<const R*>(x.data), x.rows, 2 * x.cols, 2 * x.stride});
  } else {
    using Bits = std::conditional_t<sizeof(S) == 4, std::uint32_t, std::uint64_t>;
    constexpr Bits exponent = sizeof(S) == 4 ? Bits{0x7f800000u} : static_cast<Bits>(0x7ff0000000000000u);
    constexpr Index lanes = 16;
    Bits largest = 0;
    const auto take = [](Bits& to, S value) {
      const Bits bits = std::bit_cast<Bits>(value) & exponent;
      to = bits > to ? bits : to;
    };
    Index c = 0;
    for (; c + lanes <= x.cols; c += lanes) {
      Bits most[lanes] = {};
      const S* row = x.data + c;
      for (Index r = 0; r < x.rows; ++r, row += x.stride) {
        for (Index l = 0; l < lanes; ++l) take(most[l], row[l]);
      }
      for (const Bits bits : most) largest = bits > largest ? bits : largest;
    }
    for (Index r = 0; r < x.rows; ++r) {
      for (Index rest = c; rest < x.cols; ++rest) take(largest, x.row(r)[rest]);
    }
    return largest != exponent;
  }
}

template <class S>
bool is_finite_scalar(const S& x) {
  return all_finite(Rows<const S>{&x, 1, 1, 1});
}

/// A copy of a matrix with 0 where keep(r, c) is false; r and c as stored. It has the stride and alignment of the
/// original, so that a product uses the same kernels and gives the same bits.
template <class S>
class SelectedCopy {
 public:
  template <class Keep>
  SelectedCopy(Rows<const S> x, Keep keep) : memory_((x.rows - 1) * x.stride + x.cols + line), matrix_(x) {
    S* to = memory_.data() + reinterpret_cast<std::uintptr_t>(x.data) % line / sizeof(S);
    matrix_.data = to;
    for (Index r = 0; r < x.rows; ++r) {
      for (Index c = 0; c < x.cols; ++c) to[r * x.stride + c] = keep(r, c) ? x.row(r)[c] : S(0);
    }
  }
  Rows<const S> matrix() const { return matrix_; }

 private:
  static constexpr Index line = 64;
  Buffer<S> memory_;
  Rows<const S> matrix_;
};

inline Transpose flipped(Transpose transpose) { return transpose == Transpose::yes ? Transpose::no : Transpose::yes; }

/// c = scale a b (+ c) for a c that may be stored transposed: c^T = scale b^T a^T.
template <class S>
void multiply_into(Operand<S> a, Operand<S> b, S scale, Store store, Rows<S> c, Transpose transpose_c) {
  if (transpose_c == Transpose::no) {
    multiply<S>(a, b, scale, store, c);
  } else {
    multiply<S>({b.matrix, flipped(b.transpose)}, {a.matrix, flipped(a.transpose)}, scale, store, c);
  }
}

/// multiply_into, in which b(i, n) contributes to c(r, n) only if seen(r, i, n). Requires that a(r, i) is 0, or c(r, n)
/// is not used, where seen is false. Elements of b that are not finite are added separately, to the elements of c that
/// see them; all other elements of c get the same bits as with finite numbers in their place. If all of b is `finite`,
/// this is multiply_into.
template <class S, class Seen>
void multiply_seen(Operand<S> a, Operand<S> b, S scale, Store store, Rows<S> c, Transpose transpose_c, bool finite,
                   Seen seen) {
  if (finite) {
    multiply_into<S>(a, b, scale, store, c, transpose_c);
    return;
  }
  const SelectedCopy<S> copy(b.matrix, [&](Index r, Index i) { return is_finite_scalar(b.matrix.row(r)[i]); });
  multiply_into<S>(a, {copy.matrix(), b.transpose}, scale, store, c, transpose_c);
  const auto element = [](auto& matrix, Transpose transpose, Index r, Index i) -> auto& {
    return transpose == Transpose::no ? matrix.row(r)[i] : matrix.row(i)[r];
  };
  std::vector<Index> places;
  for (Index n = 0; n < b.cols(); ++n) {
    places.clear();
    for (Index i = 0; i < b.rows(); ++i) {
      if (!is_finite_scalar(element(b.matrix, b.transpose, i, n))) places.push_back(i);
    }
    for (Index r = 0; r < a.rows(); ++r) {
      S& to = element(c, transpose_c, r, n);
      for (const Index i : places) {
        if (to != to) break;  // NaN, whatever is added
        if (seen(r, i, n)) to += scale * element(a.matrix, a.transpose, r, i) * element(b.matrix, b.transpose, i, n);
      }
    }
  }
}

}  // namespace handgrad
