#include "numbers.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <limits>
#include <optional>

#include "command.h"
#include "escape.h"

namespace handgrad::cli {
namespace {

// The whole text as a number, or nothing. from_chars ignores the locale.
template <class T>
std::optional<T> whole(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// A correction, if the intended number is evident.
std::string hint(std::string_view text, bool integer) {
  std::string with_point(text);
  const std::size_t comma = with_point.find(',');
  if (comma != std::string::npos && with_point.find_first_of(",.", comma + 1) == std::string::npos) {
    with_point[comma] = '.';
    if (whole<double>(with_point)) return fmt::format("; the decimal separator is a point: {}", with_point);
  }
  const bool real_form = integer && text.find_first_of(".eE") != std::string_view::npos;
  const std::optional<double> real = real_form ? whole<double>(text) : std::nullopt;
  if (real && std::abs(*real) < 9e15 && *real == std::floor(*real)) {
    return fmt::format("; an integer has neither point nor exponent: {:.0f}", *real);
  }
  return "";
}

[[noreturn]] void refuse(std::string_view option, const std::string& expected, std::string_view text, bool integer) {
  throw UsageError(
      fmt::format("{}: expected {}, got {}{}", option, expected, quoted_excerpt(text), hint(text, integer)));
}

template <class T>
T integer_between(std::string_view option, std::string_view text, T lowest, T highest) {
  const std::optional<T> value = whole<T>(text);
  if (value && *value >= lowest && *value <= highest) return *value;
  const std::string expected = highest == std::numeric_limits<T>::max() && lowest == 0
                                   ? "an integer of at least 0"
                                   : fmt::format("an integer from {} to {}", lowest, highest);
  refuse(option, expected, text, true);
}

}  // namespace

Index read_integer(std::string_view option, std::string_view text, Index lowest, Index highest) {
  return integer_between<Index>(option, text, lowest, highest);
}

std::uint64_t read_seed(std::string_view option, std::string_view text) {
  const std::optional<std::uint64_t> value = whole<std::uint64_t>(text);
  if (value) return *value;
  refuse(option, "an integer from 0 to 18446744073709551615", text, true);
}

double read_number(std::string_view option, std::string_view text, double lowest, double highest) {
  const std::optional<double> value = whole<double>(text);
  if (value && std::isfinite(*value) && *value >= lowest && *value <= highest) return *value;
  refuse(option, fmt::format("a number from {} to {}", lowest, highest), text, false);
}

}  // namespace handgrad::cli
