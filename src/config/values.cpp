#include "config/values.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "handgrad/config/fields.h"
#include "handgrad/files/utf8.h"

namespace handgrad::config {
namespace {

constexpr std::size_t excerpt_bytes = 60;

std::string escaped(char c) {
  switch (c) {
    case '\n':
      return "\\n";
    case '\t':
      return "\\t";
    case '\r':
      return "\\r";
    default:
      return fmt::format("\\u{:04x}", static_cast<unsigned>(static_cast<unsigned char>(c)));
  }
}

bool is_control(char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }
bool is_continuation(char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; }

std::string real_text(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  // fmt prints the fewest digits that give the same bits when read back, with a point in every locale.
  std::string text = fmt::format("{}", value);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

std::string real_range(const RealRange& range) {
  if (range.with_lowest && range.with_highest)
    return fmt::format("a number from {} to {}", range.lowest, range.highest);
  return fmt::format("a number {} {} and {} {}", range.with_lowest ? "of at least" : "above", range.lowest,
                     range.with_highest ? "at most" : "below", range.highest);
}

std::string choice_list(const std::vector<std::string>& choices) {
  std::string text = "one of ";
  for (std::size_t i = 0; i < choices.size(); ++i) text += (i == 0 ? "" : ", ") + quoted(choices[i]);
  return text;
}

bool in_range(const RealRange& range, double value) {
  // NaN must fail every comparison.
  const bool high_enough = range.with_lowest ? value >= range.lowest : value > range.lowest;
  const bool low_enough = range.with_highest ? value <= range.highest : value < range.highest;
  return high_enough && low_enough;
}

bool is_usable_text(const std::string& text) { return !text.empty() && files::is_utf8(text); }

bool is_path(const std::string& text) { return is_usable_text(text) && text.find('\0') == std::string::npos; }

}  // namespace

std::string one_line(std::string_view text) {
  std::string result;
  for (const char c : text) result += is_control(c) ? escaped(c) : std::string(1, c);
  return result;
}

std::string quoted(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    result += is_control(c) ? escaped(c) : std::string(1, c);
  }
  return result + '"';
}

std::string excerpt(std::string_view text) {
  if (text.size() <= excerpt_bytes) return quoted(text);
  std::size_t size = excerpt_bytes;
  while (size > 0 && is_continuation(text[size])) --size;
  return quoted(text.substr(0, size)) + "...";
}

int edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<int>> d(a.size() + 1, std::vector<int>(b.size() + 1, 0));
  for (std::size_t i = 0; i <= a.size(); ++i) d[i][0] = static_cast<int>(i);
  for (std::size_t j = 0; j <= b.size(); ++j) d[0][j] = static_cast<int>(j);
  for (std::size_t i = 1; i <= a.size(); ++i) {
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const int change = a[i - 1] == b[j - 1] ? 0 : 1;
      d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + change});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
    }
  }
  return d[a.size()][b.size()];
}

std::string to_toml(const FieldValue& value) {
  if (const auto* integer = std::get_if<Index>(&value)) return fmt::format("{}", *integer);
  if (const auto* real = std::get_if<double>(&value)) return real_text(*real);
  if (const auto* boolean = std::get_if<bool>(&value)) return *boolean ? "true" : "false";
  if (const auto* text = std::get_if<std::string>(&value)) return quoted(*text);
  std::string list = "[";
  for (const std::string& text : std::get<std::vector<std::string>>(value)) {
    list += (list.size() > 1 ? ", " : "") + quoted(text);
  }
  return list + "]";
}

std::string expected(const Field& field) {
  switch (field.type) {
    case FieldType::integer:
      return fmt::format("an integer from {} to {}", field.integers.lowest, field.integers.highest);
    case FieldType::real:
      return real_range(field.reals);
    case FieldType::boolean:
      return "true or false";
    case FieldType::string:
      return "a string of at least one character";
    case FieldType::paths:
      return "a list of paths such as [\"a.txt\"]";
    case FieldType::choice:
      return choice_list(field.choices);
  }
  return "?";
}

bool accepts(const Field& field, const FieldValue& value) {
  switch (field.type) {
    case FieldType::integer: {
      const auto* integer = std::get_if<Index>(&value);
      return integer && *integer >= field.integers.lowest && *integer <= field.integers.highest;
    }
    case FieldType::real: {
      const auto* real = std::get_if<double>(&value);
      return real && in_range(field.reals, *real);
    }
    case FieldType::boolean:
      return std::holds_alternative<bool>(value);
    case FieldType::string: {
      const auto* text = std::get_if<std::string>(&value);
      return text && is_usable_text(*text);
    }
    case FieldType::paths: {
      const auto* list = std::get_if<std::vector<std::string>>(&value);
      return list && std::all_of(list->begin(), list->end(), is_path);
    }
    case FieldType::choice: {
      const auto* text = std::get_if<std::string>(&value);
      return text && std::find(field.choices.begin(), field.choices.end(), *text) != field.choices.end();
    }
  }
  return false;
}

}  // namespace handgrad::config
