#pragma once

#include <string>
#include <string_view>
#include <vector>

// A comma in an option's value is a comma: no option takes a list.
#define CXXOPTS_VECTOR_DELIMITER '\0'
#include <cxxopts.hpp>

#include "handgrad/core/errors.h"
#include "handgrad/core/parallel.h"

namespace handgrad::cli {

/// Exit codes of the program.
enum ExitCode {
  done = 0,
  check_failed = 1,
  usage = 2,
  non_finite = 3,
  files_and_data = 4,
  out_of_memory = 5,
  reader_gone = 141  // as if SIGPIPE had ended the program
};

/// A wrong command line.
class UsageError : public Error {
 public:
  using Error::Error;
};

using Arguments = std::vector<std::string>;

int run_train(const Arguments& arguments);
int run_generate(const Arguments& arguments);
int run_eval(const Arguments& arguments);
int run_audit(const Arguments& arguments);
int run_bench(const Arguments& arguments);
int run_inspect(const Arguments& arguments);
int run_config(const Arguments& arguments);

/// Options of one command, with --help, --threads and --quiet; positional arguments are named in `positional`.
cxxopts::Options make_options(const std::string& command, const std::string& purpose,
                              const std::string& positional_help);

/// Parses; prints the help if it was asked for. Options take their values as text (numbers.h reads numbers). An option
/// that takes one value may be given once. Throws UsageError.
struct Parsed {
  cxxopts::ParseResult values;
  bool help = false;
};
Parsed parse(cxxopts::Options& options, const std::string& command, const Arguments& arguments);

/// The number of threads to use: --threads, else OMP_NUM_THREADS, else the cores allowed. Throws UsageError.
int wanted_threads(const cxxopts::ParseResult& values);

/// Is it what OMP_NUM_THREADS takes: numbers above 0 with commas between them?
bool is_thread_list(std::string_view text);

/// The one positional argument, or UsageError.
std::string required_argument(const cxxopts::ParseResult& values, const std::string& name, const std::string& what);

/// Throws DataError if the file of --json=FILE cannot be written for want of a folder, or is one: before the work.
void check_json(const cxxopts::ParseResult& values);

/// Prints a JSON line to stdout for --json, or writes it to the file of --json=FILE, as write_output does.
void write_json(const cxxopts::ParseResult& values, const std::string& json);

/// "1 token", "2 tokens".
std::string counted(Index count, const std::string& what);

/// Bytes of text files and folders, before they are read; 0 for paths that cannot be read, since reading them says why.
Index size_of_texts(const std::vector<std::string>& paths);

/// Warnings and notes to stderr, one line.
void note(const std::string& text);

}  // namespace handgrad::cli
