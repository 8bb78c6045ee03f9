#pragma once

#include <complex>
#include <cstdint>
#include <type_traits>

namespace handgrad {

/// Extents, sizes, counts and steps: 64-bit signed everywhere.
using Index = std::int64_t;

/// A token of a vocabulary.
using TokenId = std::int32_t;

template <class S>
inline constexpr bool is_complex_v = false;
template <class R>
inline constexpr bool is_complex_v<std::complex<R>> = true;

}  // namespace handgrad
