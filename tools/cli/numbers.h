#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "handgrad/core/types.h"

namespace handgrad::cli {

/// Values of options as numbers, in every locale the same: the whole text is a decimal number, or it is a UsageError
/// that names the option, what is expected and what was read. Nothing is rounded, cut or guessed.

/// An integer in the range. A sign other than "-", a point, an exponent, a prefix or a blank is an error.
Index read_integer(std::string_view option, std::string_view text, Index lowest, Index highest);

/// An integer from 0 to 2^64 - 1.
std::uint64_t read_seed(std::string_view option, std::string_view text);

/// A finite number in the range: digits, a point, an exponent.
double read_number(std::string_view option, std::string_view text, double lowest, double highest);

}  // namespace handgrad::cli
