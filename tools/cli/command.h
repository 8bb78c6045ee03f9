#pragma once

#include <string>
#include <vector>

#include "handgrad/core/errors.h"
#include "handgrad/core/parallel.h"
#include "handgrad/text/corpus.h"
#include "options.h"

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

using text::counted;

int run_train(const Arguments& arguments);
int run_generate(const Arguments& arguments);
int run_eval(const Arguments& arguments);
int run_audit(const Arguments& arguments);
int run_bench(const Arguments& arguments);
int run_inspect(const Arguments& arguments);
int run_config(const Arguments& arguments);

/// The total size of text files and folders; 0 if a path cannot be read, since reading it will report the error.
Index size_of_texts(const std::vector<std::string>& paths);

/// Prints a warning or note to standard error, as one line.
void note(const std::string& text);

/// Prints a note about each checkpoint that was passed over.
void note_passed_over(const std::vector<std::string>& passed_over);

}  // namespace handgrad::cli
