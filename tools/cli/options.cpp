#include "options.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <map>

#include "command.h"
#include "escape.h"
#include "handgrad/config/describe.h"
#include "handgrad/core/parallel.h"
#include "numbers.h"

namespace handgrad::cli {
namespace {

using Details = cxxopts::HelpOptionDetails;

const std::vector<Details>& details(const cxxopts::Options& options) { return options.group_help("").options; }

std::string long_name(const Details& option) { return option.l.empty() ? option.s : option.l.front(); }

// cxxopts encloses the name of the option at fault in typographic quotes.
std::string name_in(const std::string& message) {
  constexpr std::string_view open = "\u2018", close = "\u2019";
  const std::size_t begin = message.find(open), end = message.find(close);
  if (begin == std::string::npos || end == std::string::npos) return message;
  const std::string name = message.substr(begin + open.size(), end - begin - open.size());
  return (name.size() == 1 ? "-" : name.starts_with("-") ? "" : "--") + escaped(name);
}

// After "--json FILE", FILE is a positional argument and displaces the intended one.
std::string json_hint(const Arguments& arguments) {
  const auto json = std::find(arguments.begin(), arguments.end(), "--json");
  if (json == arguments.end() || json + 1 == arguments.end() || (json + 1)->starts_with("-")) return "";
  return fmt::format("; the file for --json follows an equals sign: --json={}", escaped(*(json + 1)));
}

std::string help_of(const cxxopts::Options& options) {
  std::string help = options.help();
  constexpr std::string_view empty_value = "(=)";  // the implicit value of --json
  for (std::size_t at; (at = help.find(empty_value)) != std::string::npos;) {
    help.replace(at, empty_value.size() + 1, "]   ");
  }
  return help;
}

}  // namespace

std::string Values::text(const std::string& name) const {
  return given(name) || values_[name].has_default() ? values_[name].as<std::string>() : "";
}

std::vector<std::string> Values::list(const std::string& name) const {
  return given(name) ? values_[name].as<std::vector<std::string>>() : std::vector<std::string>();
}

std::string Values::required(const std::string& name, const std::string& problem) const {
  if (!given(name)) throw UsageError(problem);
  return text(name);
}

Options::Options(std::string command, const std::string& purpose, const std::string& positional_help)
    : command_(std::move(command)), options_("handgrad " + command_, purpose) {
  options_.custom_help("[OPTION]...").positional_help(positional_help).set_width(100);
  flag("h,help", "Show this help");
  value("threads", "N", "Threads (default: OMP_NUM_THREADS, else the cores allowed)");
  flag("q,quiet", "Print only results and errors");
}

Options& Options::flag(const std::string& names, const std::string& help) {
  options_.add_options()(names, help);
  return *this;
}

Options& Options::value(const std::string& names, const std::string& value_name, const std::string& help) {
  options_.add_options()(names, help, cxxopts::value<std::string>(), value_name);
  return *this;
}

Options& Options::value(const std::string& names, const std::string& value_name, const std::string& help,
                        const std::string& default_value) {
  options_.add_options()(names, help, cxxopts::value<std::string>()->default_value(default_value), value_name);
  return *this;
}

Options& Options::list(const std::string& names, const std::string& value_name, const std::string& help) {
  options_.add_options()(names, help, cxxopts::value<std::vector<std::string>>(), value_name);
  return *this;
}

Options& Options::set() { return list("set", "KEY=VALUE", "Set a key of the config; may be repeated"); }

Options& Options::json() {
  options_.add_options()("json", "Print one JSON object, or write it to FILE",
                         cxxopts::value<std::string>()->implicit_value(""), "FILE");
  return *this;
}

Options& Options::positional(const std::vector<std::string>& names) {
  for (const std::string& name : names) options_.add_options()(name, "", cxxopts::value<std::string>());
  options_.parse_positional(names);
  return *this;
}

void Options::refuse(const std::string& problem) const {
  throw UsageError(fmt::format("{}: {}; see handgrad {} --help", command_, problem, command_));
}

std::string Options::nearest_option(const std::string& unknown) const {
  std::vector<std::string> names;
  for (const Details& option : details(options_)) {
    if (!option.desc.empty()) names.push_back("--" + long_name(option));
  }
  const auto begins = std::find_if(names.begin(), names.end(), [&](const auto& n) { return n.starts_with(unknown); });
  const bool is_prefix = unknown.size() > 3 && begins != names.end();
  const std::string nearest = is_prefix ? *begins : config::nearest_name(unknown, names);
  return nearest.empty() ? "" : fmt::format("; did you mean {}?", nearest);
}

// Lists and flags may be repeated. Of any other option, one of two values would be ignored.
void Options::check_given_once(const cxxopts::ParseResult& values) const {
  std::map<std::string, std::string> first;
  for (const cxxopts::KeyValue& given : values.arguments()) {
    const auto option = std::find_if(details(options_).begin(), details(options_).end(),
                                     [&](const Details& d) { return long_name(d) == given.key(); });
    if (option == details(options_).end() || option->is_container || option->is_boolean) continue;
    const auto [earlier, is_new] = first.emplace(given.key(), given.value());
    if (is_new) continue;
    refuse(fmt::format("--{} is given twice, {} and {}: one value is expected", given.key(),
                       quoted_excerpt(earlier->second), quoted_excerpt(given.value())));
  }
}

Values Options::parse(const Arguments& arguments) {
  std::vector<const char*> argv{"handgrad"};
  for (const std::string& argument : arguments) argv.push_back(argument.c_str());
  try {
    cxxopts::ParseResult values = options_.parse(static_cast<int>(argv.size()), argv.data());
    if (values.count("help") > 0) {
      fmt::print("{}\n", help_of(options_));
      return Values(std::move(values));
    }
    check_given_once(values);
    if (!values.unmatched().empty()) {
      refuse(fmt::format("unexpected argument {}{}", quoted_excerpt(values.unmatched().front()), json_hint(arguments)));
    }
    return Values(std::move(values));
  } catch (const cxxopts::exceptions::no_such_option& error) {
    const std::string name = name_in(error.what());
    refuse(fmt::format("there is no option {}{}", name, nearest_option(name)));
  } catch (const cxxopts::exceptions::missing_argument& error) {
    refuse(fmt::format("{}: a value is expected", name_in(error.what())));
  } catch (const cxxopts::exceptions::exception& error) {
    refuse(escaped(error.what()));
  }
}

bool is_thread_list(std::string_view text) {
  bool digits = false, positive = false;
  for (const char c : text) {
    if (c == ',' ? !positive : c < '0' || c > '9') return false;
    digits = c != ',';
    positive = digits && (positive || c != '0');
  }
  return digits && positive;
}

int wanted_threads(const Values& values) {
  constexpr int most = 1024;
  if (values.given("threads")) return static_cast<int>(read_integer("--threads", values.text("threads"), 1, most));
  const char* text = std::getenv("OMP_NUM_THREADS");
  const int threads = text != nullptr && is_thread_list(text) ? thread_count() : available_cores();
  if (threads > most) throw UsageError(fmt::format("OMP_NUM_THREADS: expected 1 to {}, got {}", most, threads));
  return threads;
}

}  // namespace handgrad::cli
