#pragma once

#include <cstdint>
#include <type_traits>
#include <vector>

#include "core/math.h"
#include "handgrad/core/buffer.h"
#include "handgrad/core/gemm.h"

// Products of attention, where some pairs of a query and a key do not see each other. A coefficient of 0 is not enough
// to keep a hidden row out of a product: 0 times NaN or infinity is NaN.

namespace handgrad {

/// True if no element is NaN or infinite. Columns are taken 16 at a time, each with its
/// largest exponent, so that the compiler makes vector instructions of the loop over rows.
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

/// A copy of a matrix with 0 where keep(r, c) is false, r and c as stored. Stride and alignment are those of the
/// original, so that a product takes the same path through its kernels and gives the same bits.
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

/// multiply_into, where element b(i, n) reaches c(r, n) only if seen(r, i, n). Where it does not, a(r, i) is 0 or
/// c(r, n) is not looked at. What is not finite is added apart, to those that see it: all others get the bits that they
/// would get if a finite number stood there. `finite` says that all of b is: then this is multiply_into.
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
        if (to != to) break;  // it stays NaN
        if (seen(r, i, n)) to += scale * element(a.matrix, a.transpose, r, i) * element(b.matrix, b.transpose, i, n);
      }
    }
  }
}

}  // namespace handgrad
