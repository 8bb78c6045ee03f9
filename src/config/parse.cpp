#include "handgrad/config/parse.h"

#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <optional>

#include "config/suggest.h"
#include "config/values.h"
#include "handgrad/config/fields.h"
#include "handgrad/config/validate.h"
#include "handgrad/core/errors.h"
#include "handgrad/files/encoding.h"
#include "handgrad/files/file_system.h"
#include "handgrad/files/read_file.h"

namespace handgrad {
namespace {

constexpr Index largest_file_bytes = 16 << 20;
constexpr std::string_view format_key = "format";

std::string found(const toml::node& node) {
  if (const auto* text = node.as_string()) return config::excerpt(text->get());
  if (const auto* integer = node.as_integer()) return fmt::format("{}", integer->get());
  if (const auto* real = node.as_floating_point()) return config::to_toml(config::FieldValue(real->get()));
  if (const auto* boolean = node.as_boolean()) return boolean->get() ? "true" : "false";
  if (node.is_table()) return "a table";
  if (const auto* list = node.as_array()) {
    for (const toml::node& item : *list) {
      if (!item.is_string() || item.as_string()->get().empty()) return fmt::format("a list with {}", found(item));
    }
    return "a list";
  }
  return "a date or time";
}

// The node as a value of the type of the field, or empty. The only conversion is from integer to real.
std::optional<config::FieldValue> convert(const config::Field& field, const toml::node& node) {
  switch (field.type) {
    case config::FieldType::integer:
      if (const auto* integer = node.as_integer()) return Index{integer->get()};
      break;
    case config::FieldType::real:
      if (const auto* real = node.as_floating_point()) return real->get();
      if (const auto* integer = node.as_integer()) return static_cast<double>(integer->get());
      break;
    case config::FieldType::boolean:
      if (const auto* boolean = node.as_boolean()) return boolean->get();
      break;
    case config::FieldType::string:
    case config::FieldType::choice:
      if (const auto* text = node.as_string()) return text->get();
      break;
    case config::FieldType::paths:
      if (const auto* list = node.as_array()) {
        std::vector<std::string> paths;
        for (const toml::node& item : *list) {
          if (!item.is_string()) return std::nullopt;
          paths.push_back(item.as_string()->get());
        }
        return paths;
      }
      break;
  }
  return std::nullopt;
}

// The hint how to write a number in TOML: for 2.0 or "2" where an integer is expected, and for .5, 5. and 0,5.
std::string number_hint(const config::Field& field, const toml::node& node) {
  if (field.type != config::FieldType::integer && field.type != config::FieldType::real) return "";
  double value = 0.0;
  if (const auto* real = node.as_floating_point(); real && field.type == config::FieldType::integer) {
    value = real->get();
  } else if (const auto* text = node.as_string()) {
    std::string digits = text->get();
    const std::size_t comma = digits.find(',');
    if (comma != std::string::npos) digits[comma] = '.';
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error != std::errc{} || end != digits.data() + digits.size()) return "";
  } else {
    return "";
  }
  if (field.type == config::FieldType::real)
    return std::isfinite(value) ? fmt::format("; write {}", config::to_toml(config::FieldValue(value))) : "";
  return std::abs(value) < 9e15 && value == std::floor(value) ? fmt::format("; write {:.0f}", value) : "";
}

std::string absolute_path(const std::string& path, const std::string& base_folder) {
  namespace fs = std::filesystem;
  std::string result = (fs::absolute(base_folder.empty() ? "." : base_folder) / path).lexically_normal().string();
  if (result.size() > 1 && result.ends_with('/')) result.pop_back();
  return result;
}

// An error and its line in the file.
struct Problem {
  std::uint32_t line;
  std::string text;
};

class Parser {
 public:
  ParsedConfig take() { return std::move(parsed_); }

  // All problems, in the order of lines. Throws ConfigError for a text that is not TOML.
  std::vector<std::string> read_file_text(std::string_view text, const std::string& source_name,
                                          const std::string& base_folder) {
    const files::EncodingGuess wide = files::guess_wide_encoding(text);
    if (!wide.name.empty()) {
      fail(fmt::format("{}: a config is UTF-8 text{}", source_name, files::conversion_hint(wide, source_name)));
    }
    toml::table root;
    try {
      root = toml::parse(text, source_name);
    } catch (const toml::parse_error& error) {
      const std::uint32_t line = error.source().begin.line;
      fail(fmt::format("{}:{}: malformed TOML: {}{}", source_name, line, cause(error),
                       malformed_hint(line_of(text, line))));
    }
    base_folder_ = base_folder;
    read_root(root);
    return take_problems([&](const Problem& p) { return fmt::format("{}:{}: {}", source_name, p.line, p.text); });
  }

  std::vector<std::string> read_override(const std::string& text) {
    const std::size_t equals = text.find('=');
    if (equals == 0 || equals == std::string::npos) fail(fmt::format("--set {}: expected KEY=VALUE", text));
    std::string key = text.substr(0, equals);
    while (key.ends_with(' ')) key.pop_back();
    const config::Field* field = config::find_field(key);
    if (field == nullptr) fail(fmt::format("--set {}: unknown key{}", key, config::suggestion(key)));
    const toml::table holder = override_value(text.substr(equals + 1));
    base_folder_.clear();
    read_value(*field, *holder.get("value"), 0);
    return take_problems([](const Problem& p) { return fmt::format("--set {}", p.text); });
  }

 private:
  [[noreturn]] static void fail(const std::string& message) { throw ConfigError(config::one_line(message)); }

  static std::string cause(const toml::parse_error& error) {
    std::string text(error.description());
    const std::size_t colon = text.find(": ");
    return text.starts_with("Error while parsing") && colon != std::string::npos ? text.substr(colon + 2) : text;
  }

  static std::string_view line_of(std::string_view text, std::uint32_t number) {
    for (; number > 1 && text.find('\n') != std::string_view::npos; --number) text.remove_prefix(text.find('\n') + 1);
    return text.substr(0, text.find('\n'));
  }

  // Hints for Windows paths and for numbers that TOML does not accept.
  static std::string malformed_hint(std::string_view line) {
    const std::size_t quote = line.find('"');
    if (quote != std::string_view::npos && line.find('\\', quote) != std::string_view::npos) {
      return "; between double quotes a backslash begins an escape: write the path with slashes or between single "
             "quotes";
    }
    const std::size_t value = line.find_first_not_of(" \t+-", line.find('=') + 1);
    if (line.find('=') != std::string_view::npos && value != std::string_view::npos && line[value] == '.') {
      return fmt::format("; a digit comes before the point: 0{}",
                         line.substr(value, line.find_first_of(" \t\r#", value) - value));
    }
    return "";
  }

  template <class Format>
  std::vector<std::string> take_problems(Format format) {
    std::stable_sort(problems_.begin(), problems_.end(),
                     [](const Problem& a, const Problem& b) { return a.line < b.line; });
    std::vector<std::string> texts;
    for (const Problem& problem : problems_) texts.push_back(config::one_line(format(problem)));
    problems_.clear();
    return texts;
  }

  // {value = ...}, from a TOML value, else a string.
  static toml::table override_value(const std::string& text) {
    try {
      toml::table table = toml::parse(fmt::format("value = {}", text));
      if (table.size() == 1 && table.contains("value")) return table;
    } catch (const toml::parse_error&) {
    }
    toml::table table;
    table.insert("value", text);
    return table;
  }

  void complain(std::uint32_t line, std::string text) { problems_.push_back({line, std::move(text)}); }

  void read_root(const toml::table& root) {
    int format = config::config_format;
    for (const auto& [key, node] : root) {
      const std::string name(key.str());
      const std::uint32_t line = key.source().begin.line;
      if (name == format_key) {
        format = read_format(node, line);
      } else if (config::is_table(name)) {
        read_table(name, node, line);
      } else if (node.is_table()) {
        complain(line, fmt::format("[{}]: unknown table{}", name, config::table_suggestion(name)));
      } else {
        complain(line, fmt::format("{}: unknown key{}", name, config::suggestion(name)));
      }
    }
    config::set_older_values(config::fields(), format, parsed_.given, parsed_.config);
  }

  int read_format(const toml::node& node, std::uint32_t line) {
    const auto* integer = node.as_integer();
    if (integer == nullptr || integer->get() < 1) {
      complain(line, fmt::format("{}: expected an integer from 1 to {}, got {}", format_key, config::config_format,
                                 found(node)));
      return config::config_format;
    }
    if (integer->get() > config::config_format) {
      complain(line, fmt::format("{}: written by a newer handgrad: format {}, this one reads up to {}", format_key,
                                 integer->get(), config::config_format));
      return config::config_format;
    }
    return static_cast<int>(integer->get());
  }

  void read_table(const std::string& name, const toml::node& node, std::uint32_t line) {
    const toml::table* table = node.as_table();
    if (table == nullptr) return complain(line, fmt::format("{}: expected a table, got {}", name, found(node)));
    for (const auto& [key, value] : *table) {
      const std::string full = fmt::format("{}.{}", name, key.str());
      const std::uint32_t key_line = key.source().begin.line;
      if (const config::Field* field = config::find_field(full)) {
        read_value(*field, value, key_line);
      } else {
        complain(key_line, fmt::format("{}: unknown key{}", full, config::suggestion(full)));
      }
    }
  }

  void read_value(const config::Field& field, const toml::node& node, std::uint32_t line) {
    std::optional<config::FieldValue> value = convert(field, node);
    if (value && field.type == config::FieldType::paths && config::accepts(field, *value)) {
      for (std::string& path : std::get<std::vector<std::string>>(*value)) path = absolute_path(path, base_folder_);
    }
    if (!value || !config::accepts(field, *value)) {
      return complain(line, fmt::format("{}: expected {}, got {}{}", field.key, config::expected(field), found(node),
                                        value ? "" : number_hint(field, node)));
    }
    field.set(parsed_.config, *value);
    parsed_.given.insert(field.key);
  }

  ParsedConfig parsed_;
  std::string base_folder_;  // Empty: the current folder.
  std::vector<Problem> problems_;
};

}  // namespace

namespace {

std::string read_config_file(const std::string& path) {
  try {
    return files::read_file(path, largest_file_bytes);
  } catch (const DataError& error) {
    throw ConfigError(config::one_line(error.what()));
  }
}

void throw_first(const std::vector<std::string>& problems) {
  if (!problems.empty()) throw ConfigError(problems.front());
}

}  // namespace

ParsedConfig load_config(const std::string& path, const std::vector<std::string>& overrides) {
  return parse_config(read_config_file(path), path, files::folder_of(path), overrides);
}

ParsedConfig parse_config(std::string_view toml_text, const std::string& source_name, const std::string& base_folder,
                          const std::vector<std::string>& overrides) {
  Parser parser;
  throw_first(parser.read_file_text(toml_text, source_name, base_folder));
  for (const std::string& text : overrides) throw_first(parser.read_override(text));
  return parser.take();
}

std::vector<std::string> config_problems(const std::string& path, const std::vector<std::string>& overrides) {
  Parser parser;
  std::vector<std::string> all;
  const auto collect = [&all](auto read) {
    try {
      const std::vector<std::string> problems = read();
      all.insert(all.end(), problems.begin(), problems.end());
    } catch (const ConfigError& error) {
      all.emplace_back(error.what());
    }
  };
  collect([&] { return parser.read_file_text(read_config_file(path), path, files::folder_of(path)); });
  for (const std::string& text : overrides) collect([&] { return parser.read_override(text); });
  // If a value could not be read, rules across keys would check its default.
  if (all.empty()) all = broken_rules(parser.take().config, path);
  return all;
}

}  // namespace handgrad
