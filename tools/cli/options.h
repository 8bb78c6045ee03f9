#pragma once

#include <string>
#include <string_view>
#include <vector>

// A comma is part of an option's value: no option takes a list in one value.
#define CXXOPTS_VECTOR_DELIMITER '\0'
#include <cxxopts.hpp>

namespace handgrad::cli {

using Arguments = std::vector<std::string>;

/// The options that a command was called with. Values are text; numbers.h converts numbers.
class Values {
 public:
  explicit Values(cxxopts::ParseResult values) : values_(std::move(values)) {}

  bool given(const std::string& name) const { return values_.count(name) > 0; }
  bool help() const { return given("help"); }
  bool quiet() const { return given("quiet"); }
  /// The value or its default; empty if there is neither.
  std::string text(const std::string& name) const;
  /// All values of an option that may be repeated.
  std::vector<std::string> list(const std::string& name) const;
  /// A positional argument. Throws UsageError(problem) if it is missing.
  std::string required(const std::string& name, const std::string& problem) const;

 private:
  cxxopts::ParseResult values_;
};

/// Declares the options of a command, one call per option, and parses its arguments. --help, --threads and --quiet are
/// always present.
class Options {
 public:
  Options(std::string command, const std::string& purpose, const std::string& positional_help);

  Options& flag(const std::string& names, const std::string& help);
  /// An option with a value, given at most once.
  Options& value(const std::string& names, const std::string& value_name, const std::string& help);
  Options& value(const std::string& names, const std::string& value_name, const std::string& help,
                 const std::string& default_value);
  /// An option that may be repeated.
  Options& list(const std::string& names, const std::string& value_name, const std::string& help);
  /// --set KEY=VALUE
  Options& set();
  /// --json or --json=FILE; see json.h.
  Options& json();
  /// Positional arguments, in order.
  Options& positional(const std::vector<std::string>& names);

  /// Prints the help if it is requested. Throws UsageError.
  Values parse(const Arguments& arguments);

 private:
  [[noreturn]] void refuse(const std::string& problem) const;
  std::string nearest_option(const std::string& unknown) const;
  void check_given_once(const cxxopts::ParseResult& values) const;

  std::string command_;
  cxxopts::Options options_;
};

/// The number of threads: --threads, else OMP_NUM_THREADS, else the cores allowed. Throws UsageError.
int wanted_threads(const Values& values);

/// Is the text a value that OMP_NUM_THREADS accepts: positive integers separated by commas?
bool is_thread_list(std::string_view text);

}  // namespace handgrad::cli
