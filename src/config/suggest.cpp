#include "config/suggest.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "config/values.h"
#include "handgrad/config/describe.h"
#include "handgrad/config/fields.h"

namespace handgrad::config {
namespace {

// Longer names are not compared: no key is nearly as long, and the distance takes quadratic time.
constexpr std::size_t longest_key = 64;

std::string_view last_part(std::string_view key) { return key.substr(key.find_last_of('.') + 1); }
std::string_view first_part(std::string_view key) { return key.substr(0, key.find('.')); }

std::vector<std::string> tables() {
  std::vector<std::string> names;
  for (const Field& field : fields()) {
    if (names.empty() || names.back() != field.table) names.push_back(field.table);
  }
  return names;
}

// Distance of an unknown key from a field: 2 per edit, plus 1 for another table and 1 for an alias.
int distance(std::string_view key, const Field& field) {
  const std::string_view name = last_part(key);
  const int other_table = first_part(key) == field.table ? 0 : 1;
  int least = 2 * edit_distance(name, field.name()) + other_table;
  for (const std::string& alias : field.aliases) {
    least = std::min(least, 2 * edit_distance(name, alias) + other_table + 1);
  }
  return least;
}

std::string listed(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

}  // namespace

bool is_table(std::string_view table) {
  return std::any_of(fields().begin(), fields().end(), [&](const Field& field) { return field.table == table; });
}

std::string suggestion(std::string_view key) {
  if (key.size() <= longest_key) {
    const auto nearest = std::min_element(fields().begin(), fields().end(), [&](const Field& a, const Field& b) {
      return distance(key, a) < distance(key, b);
    });
    // At most a third of the letters may differ.
    const int most = 2 * std::max(1, static_cast<int>(last_part(key).size()) / 3) + 2;
    if (distance(key, *nearest) <= most) return fmt::format("; did you mean {}?", nearest->key);
  }
  const std::string_view table = first_part(key);
  if (!is_table(table)) return table_suggestion(table);
  std::vector<std::string> names;
  for (const Field& field : fields()) {
    if (field.table == table) names.emplace_back(field.name());
  }
  return fmt::format("; [{}] has {}", table, listed(names));
}

std::string nearest_name(std::string_view misspelled, const std::vector<std::string>& names) {
  if (names.empty() || misspelled.size() > longest_key) return "";
  const auto nearest = std::min_element(names.begin(), names.end(), [&](const auto& a, const auto& b) {
    return edit_distance(misspelled, a) < edit_distance(misspelled, b);
  });
  const int most = std::max(1, static_cast<int>(misspelled.size()) / 3);
  return edit_distance(misspelled, *nearest) <= most ? *nearest : "";
}

std::string table_suggestion(std::string_view table) {
  const std::vector<std::string> names = tables();
  if (table.size() <= longest_key) {
    const auto nearest = std::min_element(names.begin(), names.end(), [&](const auto& a, const auto& b) {
      return edit_distance(table, a) < edit_distance(table, b);
    });
    if (edit_distance(table, *nearest) <= 2) return fmt::format("; did you mean [{}]?", *nearest);
  }
  return "; there are " + listed(names);
}

}  // namespace handgrad::config
