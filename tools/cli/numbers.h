#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "handgrad/core/types.h"

namespace handgrad::cli {

// Converts the values of options to numbers, independent of the locale. The whole text must be a decimal number; else a
// UsageError names the option, the expected values and the text. Nothing is rounded, truncated or guessed.

/// An integer in the range. "+", a point, an exponent, a prefix or a blank is an error.
Index read_integer(std::string_view option, std::string_view text, Index lowest, Index highest);

/// An integer from 0 to 2^64 - 1.
std::uint64_t read_seed(std::string_view option, std::string_view text);

/// A finite number in the range: digits, optionally with a point and an exponent.
double read_number(std::string_view option, std::string_view text, double lowest, double highest);

}  // namespace handgrad::cli
