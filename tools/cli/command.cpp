#include "command.h"

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>

#include "console.h"
#include "handgrad/core/files.h"

namespace handgrad::cli {

cxxopts::Options make_options(const std::string& command, const std::string& purpose,
                              const std::string& positional_help) {
  cxxopts::Options options("handgrad " + command, purpose);
  options.custom_help("[OPTION]...").positional_help(positional_help).set_width(100);
  options.add_options()("h,help", "Show this help")(
      "threads", "Threads (default: OMP_NUM_THREADS, else the cores allowed)", cxxopts::value<int>(), "N")(
      "q,quiet", "Print nothing but results and errors");
  return options;
}

namespace {

// cxxopts tells the value that it cannot read as a number, but not the option: the first whose value it refuses alone.
std::string malformed_value(cxxopts::Options& options, const Arguments& arguments) {
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& option = arguments[i];
    const bool joined = option.find('=') != std::string::npos;
    if (!option.starts_with("-") || (!joined && i + 1 == arguments.size())) continue;
    const char* argv[] = {"handgrad", option.c_str(), joined ? nullptr : arguments[i + 1].c_str()};
    try {
      options.parse(joined ? 2 : 3, argv);
    } catch (const cxxopts::exceptions::incorrect_argument_type&) {
      return joined ? fmt::format("{}: expected a number", option)
                    : fmt::format("{}: expected a number, got \"{}\"", option, arguments[i + 1]);
    } catch (const cxxopts::exceptions::exception&) {
    }
  }
  return "a number was expected";
}

}  // namespace

Parsed parse(cxxopts::Options& options, const std::string& command, const Arguments& arguments) {
  std::vector<const char*> argv{"handgrad"};
  for (const std::string& argument : arguments) argv.push_back(argument.c_str());
  try {
    Parsed parsed{options.parse(static_cast<int>(argv.size()), argv.data())};
    if (parsed.values.count("help") > 0) {
      fmt::print("{}\n", options.help());
      parsed.help = true;
    } else if (!parsed.values.unmatched().empty()) {
      throw UsageError(fmt::format("{}: unexpected argument \"{}\"; see handgrad {} --help", command,
                                   parsed.values.unmatched().front(), command));
    }
    return parsed;
  } catch (const cxxopts::exceptions::incorrect_argument_type&) {
    throw UsageError(
        fmt::format("{}: {}; see handgrad {} --help", command, malformed_value(options, arguments), command));
  } catch (const cxxopts::exceptions::exception& error) {
    throw UsageError(fmt::format("{}: {}; see handgrad {} --help", command, error.what(), command));
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
  if (values.count("threads") == 0) {
    const char* text = std::getenv("OMP_NUM_THREADS");
    const int threads = text != nullptr && is_thread_list(text) ? thread_count() : available_cores();
    if (threads > most) throw UsageError(fmt::format("OMP_NUM_THREADS: expected 1 to {}, got {}", most, threads));
    return threads;
  }
  const int threads = values["threads"].as<int>();
  if (threads < 1 || threads > most) throw UsageError(fmt::format("--threads: expected 1 to {}, got {}", most, threads));
  return threads;
}

std::string required_argument(const cxxopts::ParseResult& values, const std::string& name, const std::string& what) {
  if (values.count(name) == 0) throw UsageError(what);
  return values[name].as<std::string>();
}

void write_json(const cxxopts::ParseResult& values, const std::string& json) {
  const std::string file = values["json"].as<std::string>();
  if (file.empty() || file == "-") {
    fmt::print("{}\n", json);
  } else {
    write_durably(posix_files(), file, json + "\n");
  }
}

void note(const std::string& text) { say_error(text + "\n"); }

}  // namespace handgrad::cli
