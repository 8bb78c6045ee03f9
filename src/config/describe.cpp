#include "handgrad/config/describe.h"

#include <fmt/format.h>

#include <algorithm>

#include "config/suggest.h"
#include "config/values.h"
#include "handgrad/config/fields.h"
#include "handgrad/core/errors.h"

namespace handgrad {
namespace {

std::string_view resume_text(config::ResumeClass resume) {
  switch (resume) {
    case config::ResumeClass::same:
      return "stays";
    case config::ResumeClass::free:
      return "may change";
    case config::ResumeClass::steps:
      return "may change, but not below the completed updates";
    case config::ResumeClass::global_batch:
      return "may change if batch_size x accumulation remains the same";
  }
  return "";
}

std::string default_text(const config::Field& field) { return config::to_toml(field.get(Config{})); }

// In a Markdown table a bar ends the cell.
std::string cell(std::string_view text) {
  std::string result;
  for (const char c : text) result += c == '|' ? std::string("\\|") : std::string(1, c);
  return result;
}

}  // namespace

std::string to_toml(const Config& config) {
  std::string text = fmt::format("format = {}\n", config::config_format);
  std::string table;
  for (const config::Field& field : config::fields()) {
    if (field.table != table) text += fmt::format("\n[{}]\n", field.table);
    table = field.table;
    text += fmt::format("{} = {}\n", field.name(), config::to_toml(field.get(config)));
  }
  return text;
}

namespace {

std::string lower(std::string_view text) {
  std::string result;
  for (const char c : text) result += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return result;
}

template <class Wanted>
std::string explain_fields(Wanted wanted) {
  std::string text, table;
  for (const config::Field& field : config::fields()) {
    if (!wanted(field)) continue;
    if (field.table != table) text += fmt::format("{}[{}]\n", table.empty() ? "" : "\n", field.table);
    table = field.table;
    text += fmt::format("  {} = {}\n      {}\n      {}; when resumed: {}\n", field.name(), default_text(field),
                        field.help, config::expected(field), resume_text(field.resume));
  }
  return text;
}

}  // namespace

std::string explain_config(std::string_view only) {
  if (only.empty()) return explain_fields([](const config::Field&) { return true; });
  std::string text =
      explain_fields([&](const config::Field& field) { return field.key == only || field.table == only; });
  if (!text.empty()) return text;
  const auto called = [&](const config::Field& field) {
    return field.name() == only || std::find(field.aliases.begin(), field.aliases.end(), only) != field.aliases.end();
  };
  text = explain_fields(called);  // a name without its table, or of another program
  if (!text.empty()) return text;
  const std::string shown = config::excerpt(only);
  if (only.find('.') != std::string_view::npos) {
    throw ConfigError(fmt::format("there is no key {}{}", shown, config::suggestion(only)));
  }
  const std::string word = lower(only);
  text = explain_fields(
      [&](const config::Field& field) { return lower(field.key + " " + field.help).find(word) != word.npos; });
  if (!text.empty()) return fmt::format("No key has the name {}. Keys that mention it:\n\n{}", shown, text);
  throw ConfigError(fmt::format("there is no key or table {}{}", shown, config::suggestion(only)));
}

std::string explain_config_markdown() {
  std::string text =
      "# Config keys\n\n"
      "A config is a TOML file; every key can also be set with `--set KEY=VALUE`. Keys that a file omits have the\n"
      "default. Integers are accepted for numbers; there is no other conversion, and unknown keys are errors. Paths "
      "in\n"
      "a file are relative to that file, paths in `--set` to the current folder.\n\n"
      "The last column states whether a key may change when a run is resumed. `handgrad config explain --markdown`\n"
      "prints this page.\n";
  std::string table;
  for (const config::Field& field : config::fields()) {
    if (field.table != table) {
      text += fmt::format("\n## [{}]\n\n| key | values | default | meaning | when resumed |\n|---|---|---|---|---|\n",
                          field.table);
    }
    table = field.table;
    text += fmt::format("| `{}` | {} | `{}` | {} | {} |\n", field.name(), cell(config::expected(field)),
                        cell(default_text(field)), cell(field.help), resume_text(field.resume));
  }
  return text;
}

}  // namespace handgrad
