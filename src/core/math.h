#pragma once

#include <bit>
#include <cmath>
#include <complex>
#include <cstdint>
#include <numbers>

#include "handgrad/core/types.h"

// Elementary functions, one name for three scalars. Only these functions may differ between float and double; the
// formulas above them are shared. They are branch-free for float, so that the compiler can vectorise loops over them.

namespace handgrad {

/// Comparisons use real parts: a complex step must take the same branch as the real number.
inline float real_part(float x) { return x; }
inline double real_part(double x) { return x; }
inline double real_part(const std::complex<double>& x) { return x.real(); }

/// The type in which sums, means and squares of S are accumulated.
template <class S>
struct AccumulatorOf {
  using type = double;
};
template <>
struct AccumulatorOf<std::complex<double>> {
  using type = std::complex<double>;
};
template <class S>
using Accumulator = typename AccumulatorOf<S>::type;

/// A real constant as an S.
template <class S>
constexpr S constant(double x) {
  return S(x);
}
template <>
constexpr float constant<float>(double x) {
  return static_cast<float>(x);
}

template <class S>
S from_accumulator(Accumulator<S> x) {
  if constexpr (std::is_same_v<S, float>) {
    return static_cast<float>(x);
  } else {
    return x;
  }
}

inline double exp_of(double x) { return std::exp(x); }
inline std::complex<double> exp_of(const std::complex<double>& x) { return std::exp(x); }

/// e^x within 2 units in the last place; 0 below -87.33, +inf above 88.72, NaN for NaN.
/// x = n ln 2 + r with |r| <= ln(2)/2, then a polynomial for e^r and n added to the exponent (Cody and Waite 1980, ch.
/// 6).
inline float exp_of(float x) {
  constexpr float round = 12582912.0f;  // 1.5 x 2^23: adding it leaves the nearest integer in the low bits
  const float shifted = x * 1.44269504f + round;
  const float n = shifted - round;
  const float r = (x - n * 0.693359375f) - n * -2.12194440e-4f;
  float p = 1.98412698e-4f;  // Taylor's coefficients: 1/7!, 1/6! ...; on this interval their tail is below 2^-25
  p = p * r + 1.38888889e-3f;
  p = p * r + 8.33333333e-3f;
  p = p * r + 4.16666667e-2f;
  p = p * r + 1.66666667e-1f;
  p = p * r + 0.5f;
  p = p * r * r + r + 1.0f;
  const std::uint32_t exponent = std::bit_cast<std::uint32_t>(shifted) << 23;
  float y = std::bit_cast<float>(std::bit_cast<std::uint32_t>(p) + exponent);
  y = x > 88.7228317f ? std::bit_cast<float>(0x7f800000u) : y;
  y = x < -87.3365402f ? 0.0f : y;
  return x != x ? x : y;
}

inline float log_of(float x) { return std::log(x); }
inline double log_of(double x) { return std::log(x); }
inline std::complex<double> log_of(const std::complex<double>& x) { return std::log(x); }

inline double sqrt_of(double x) { return std::sqrt(x); }
inline std::complex<double> sqrt_of(const std::complex<double>& x) { return std::sqrt(x); }

/// 1 / (1 + e^-x).
template <class S>
S sigmoid(S x) {
  return S(1) / (S(1) + exp_of(-x));
}

namespace detail {

// One rational function per range, highest power first: error about 1e-16 for real arguments, analytic in each range.
// Source: W. J. Cody 1969, Rational Chebyshev approximations for the error function, Math. Comp. 23.
template <class S, std::size_t N, std::size_t M>
S rational(S x, const double (&numerator)[N], const double (&denominator)[M]) {
  S p = constant<S>(numerator[0]), q = constant<S>(denominator[0]);
  for (std::size_t i = 1; i < N; ++i) p = p * x + constant<S>(numerator[i]);
  for (std::size_t i = 1; i < M; ++i) q = q * x + constant<S>(denominator[i]);
  return p / q;
}

template <class S>
S erf_near_zero(S x) {
  static constexpr double p[] = {1.85777706184603153e-1, 3.16112374387056560e+0, 1.13864154151050156e+2,
                                 3.77485237685302021e+2, 3.20937758913846947e+3};
  static constexpr double q[] = {1.0, 2.36012909523441209e+1, 2.44024637934444173e+2, 1.28261652607737228e+3,
                                 2.84423683343917062e+3};
  return x * rational(x * x, p, q);
}

// erfc(x), real part of x above 0.46875.
template <class S>
S erfc_positive(S x) {
  static constexpr double p_middle[] = {2.15311535474403846e-8, 5.64188496988670089e-1, 8.88314979438837594e+0,
                                        6.61191906371416295e+1, 2.98635138197400131e+2, 8.81952221241769090e+2,
                                        1.71204761263407058e+3, 2.05107837782607147e+3, 1.23033935479799725e+3};
  static constexpr double q_middle[] = {1.0,
                                        1.57449261107098347e+1,
                                        1.17693950891312499e+2,
                                        5.37181101862009858e+2,
                                        1.62138957456669019e+3,
                                        3.29079923573345963e+3,
                                        4.36261909014324716e+3,
                                        3.43936767414372164e+3,
                                        1.23033935480374942e+3};
  static constexpr double p_tail[] = {1.63153871373020978e-2, 3.05326634961232344e-1, 3.60344899949804439e-1,
                                      1.25781726111229246e-1, 1.60837851487422766e-2, 6.58749161529837803e-4};
  static constexpr double q_tail[] = {1.0,
                                      2.56852019228982242e+0,
                                      1.87295284992346725e+0,
                                      5.27905102951428412e-1,
                                      6.05183413124413191e-2,
                                      2.33520497626869185e-3};
  if (real_part(x) <= 4.0) return exp_of(-x * x) * rational(x, p_middle, q_middle);
  const S z = S(1) / (x * x);
  const S series = constant<S>(std::numbers::inv_sqrtpi) - z * rational(z, p_tail, q_tail);
  return exp_of(-x * x) * series / x;
}

// erfc(z) = t exp(-z^2 + p(t)), t = 1 / (1 + z/2), z >= 0; relative error below 1.2e-7.
// Source: Press et al. 1992, Numerical Recipes, section 6.2 (a Chebyshev fit).
inline float erfc_positive_fast(float z) {
  const float t = 1.0f / (1.0f + 0.5f * z);
  float p = 0.17087277f;
  p = p * t - 0.82215223f;
  p = p * t + 1.48851587f;
  p = p * t - 1.13520398f;
  p = p * t + 0.27886807f;
  p = p * t - 0.18628806f;
  p = p * t + 0.09678418f;
  p = p * t + 0.37409196f;
  p = p * t + 1.00002368f;
  p = p * t - 1.26551223f;
  return t * exp_of(-z * z + p);
}

}  // namespace detail

/// Phi(x), the distribution function of the standard normal: (1 + erf(x / sqrt 2)) / 2, without cancellation for
/// negative x.
template <class S>
S normal_cdf(S x) {
  const S z = x * constant<S>(std::numbers::sqrt2 / 2.0);
  if (real_part(z) > 0.46875) return S(1) - constant<S>(0.5) * detail::erfc_positive(z);
  if (real_part(z) < -0.46875) return constant<S>(0.5) * detail::erfc_positive(-z);
  return constant<S>(0.5) + constant<S>(0.5) * detail::erf_near_zero(z);
}
template <>
inline float normal_cdf<float>(float x) {
  const float z = x * 0.70710678f;
  const float tail = 0.5f * detail::erfc_positive_fast(z < 0.0f ? -z : z);
  return x < 0.0f ? tail : 1.0f - tail;
}

/// phi(x) = exp(-x^2/2) / sqrt(2 pi).
template <class S>
S normal_density(S x) {
  return exp_of(constant<S>(-0.5) * x * x) * constant<S>(std::numbers::inv_sqrtpi / std::numbers::sqrt2);
}

/// True if x is neither NaN nor infinite. Tests the bits of the exponent, so that no compiler flag can remove the test.
inline bool is_finite(float x) { return (std::bit_cast<std::uint32_t>(x) & 0x7f800000u) != 0x7f800000u; }
inline bool is_finite(double x) {
  return (std::bit_cast<std::uint64_t>(x) & 0x7ff0000000000000u) != 0x7ff0000000000000u;
}

}  // namespace handgrad
