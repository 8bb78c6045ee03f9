#include "command.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>

#include "console.h"
#include "escape.h"
#include "handgrad/config/describe.h"
#include "handgrad/core/errors.h"
#include "handgrad/files/output_file.h"
#include "handgrad/text/corpus.h"
#include "numbers.h"

namespace handgrad::cli {

cxxopts::Options make_options(const std::string& command, const std::string& purpose,
                              const std::string& positional_help) {
  cxxopts::Options options("handgrad " + command, purpose);
  options.custom_help("[OPTION]...").positional_help(positional_help).set_width(100);
  options.add_options()("h,help", "Show this help")(
      "threads", "Threads (default: OMP_NUM_THREADS, else the cores allowed)", cxxopts::value<std::string>(), "N")(
      "q,quiet", "Print nothing but results and errors");
  return options;
}

namespace {

using Details = cxxopts::HelpOptionDetails;

const std::vector<Details>& details(const cxxopts::Options& options) { return options.group_help("").options; }

std::string long_name(const Details& option) { return option.l.empty() ? option.s : option.l.front(); }

[[noreturn]] void refuse(const std::string& command, const std::string& problem) {
  throw UsageError(fmt::format("{}: {}; see handgrad {} --help", command, problem, command));
}

// cxxopts puts the name of the option at fault between curly quotes.
std::string name_in(const std::string& message) {
  constexpr std::string_view open = "\u2018", close = "\u2019";
  const std::size_t begin = message.find(open), end = message.find(close);
  if (begin == std::string::npos || end == std::string::npos) return message;
  const std::string name = message.substr(begin + open.size(), end - begin - open.size());
  return (name.size() == 1 ? "-" : name.starts_with("-") ? "" : "--") + escaped(name);
}

std::string nearest_option(const cxxopts::Options& options, const std::string& wrong) {
  std::vector<std::string> names;
  for (const Details& option : details(options)) {
    if (!option.desc.empty()) names.push_back("--" + long_name(option));
  }
  const auto begins = std::find_if(names.begin(), names.end(), [&](const auto& n) { return n.starts_with(wrong); });
  const std::string nearest = wrong.size() > 3 && begins != names.end() ? *begins : config::nearest_name(wrong, names);
  return nearest.empty() ? "" : fmt::format("; did you mean {}?", nearest);
}

// A list (--set, --data) may be given more than once, and a flag may be repeated. Of any other option one value would
// be dropped.
void check_given_once(const cxxopts::Options& options, const std::string& command, const cxxopts::ParseResult& values) {
  std::map<std::string, std::string> first;
  for (const cxxopts::KeyValue& given : values.arguments()) {
    const auto option = std::find_if(details(options).begin(), details(options).end(),
                                     [&](const Details& d) { return long_name(d) == given.key(); });
    if (option == details(options).end() || option->is_container || option->is_boolean) continue;
    const auto [earlier, is_new] = first.emplace(given.key(), given.value());
    if (is_new) continue;
    refuse(command, fmt::format("--{} is given twice, {} and {}: one value is expected", given.key(),
                                quoted_excerpt(earlier->second), quoted_excerpt(given.value())));
  }
}

// "--json FILE" reads FILE as a positional argument, which then displaces the one that was meant.
std::string json_hint(const Arguments& arguments) {
  const auto json = std::find(arguments.begin(), arguments.end(), "--json");
  if (json == arguments.end() || json + 1 == arguments.end() || (json + 1)->starts_with("-")) return "";
  return fmt::format("; a file for --json is given with an equals sign: --json={}", escaped(*(json + 1)));
}

std::string help_of(const cxxopts::Options& options) {
  std::string help = options.help();
  constexpr std::string_view empty_value = "(=)";  // the implicit value of --json
  for (std::size_t at; (at = help.find(empty_value)) != std::string::npos;)
    help.replace(at, empty_value.size() + 1, "]   ");
  return help;
}

}  // namespace

Parsed parse(cxxopts::Options& options, const std::string& command, const Arguments& arguments) {
  std::vector<const char*> argv{"handgrad"};
  for (const std::string& argument : arguments) argv.push_back(argument.c_str());
  try {
    Parsed parsed{options.parse(static_cast<int>(argv.size()), argv.data())};
    if (parsed.values.count("help") > 0) {
      fmt::print("{}\n", help_of(options));
      parsed.help = true;
      return parsed;
    }
    check_given_once(options, command, parsed.values);
    if (!parsed.values.unmatched().empty()) {
      refuse(command, fmt::format("unexpected argument {}{}", quoted_excerpt(parsed.values.unmatched().front()),
                                  json_hint(arguments)));
    }
    return parsed;
  } catch (const cxxopts::exceptions::no_such_option& error) {
    const std::string name = name_in(error.what());
    refuse(command, fmt::format("there is no option {}{}", name, nearest_option(options, name)));
  } catch (const cxxopts::exceptions::missing_argument& error) {
    refuse(command, fmt::format("{}: a value is expected", name_in(error.what())));
  } catch (const cxxopts::exceptions::exception& error) {
    refuse(command, escaped(error.what()));
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

int wanted_threads(const cxxopts::ParseResult& values) {
  constexpr int most = 1024;
  if (values.count("threads") > 0) {
    return static_cast<int>(read_integer("--threads", values["threads"].as<std::string>(), 1, most));
  }
  const char* text = std::getenv("OMP_NUM_THREADS");
  const int threads = text != nullptr && is_thread_list(text) ? thread_count() : available_cores();
  if (threads > most) throw UsageError(fmt::format("OMP_NUM_THREADS: expected 1 to {}, got {}", most, threads));
  return threads;
}

std::string required_argument(const cxxopts::ParseResult& values, const std::string& name, const std::string& what) {
  if (values.count(name) == 0) throw UsageError(what);
  return values[name].as<std::string>();
}

void check_json(const cxxopts::ParseResult& values) {
  const std::string file = values.count("json") > 0 ? values["json"].as<std::string>() : "";
  if (file.empty() || file == "-") return;
  const std::string place = files::link_target(file);
  std::error_code error;
  if (std::filesystem::is_directory(place, error))
    throw DataError(fmt::format("cannot write {}: is a directory", file));
  if (!std::filesystem::is_directory(files::folder_of(place), error)) {
    throw DataError(fmt::format("cannot write {}: no such file or directory", file));
  }
}

void write_json(const cxxopts::ParseResult& values, const std::string& json) {
  const std::string file = values["json"].as<std::string>();
  if (file.empty() || file == "-") {
    fmt::print("{}\n", json);
    return;
  }
  std::fflush(stdout);  // FILE may be standard output under another name
  files::write_output(posix_files(), file, json + "\n");
}

std::string counted(Index count, const std::string& what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

Index size_of_texts(const std::vector<std::string>& paths) {
  try {
    return paths.empty() ? 0 : corpus_size_bytes(paths);
  } catch (const Error&) {
    return 0;
  }
}

void note(const std::string& text) { say_error(text + "\n"); }

}  // namespace handgrad::cli
