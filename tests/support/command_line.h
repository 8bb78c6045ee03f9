#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "support/temporary_folder.h"

namespace handgrad::test {

struct Outcome {
  int exit_code = 0;  ///< as a shell reports it: 128 + the number of the signal that ended the program
  std::string out, err;

  std::string first_error() const { return err.substr(0, err.find('\n')); }
  std::string last_line() const;
};

/// How to start the program. Settings that are not given are those of this process.
struct Launch {
  std::string folder;                    ///< The working directory.
  std::string input;                     ///< Standard input.
  std::vector<std::string> environment;  ///< NAME=VALUE
  long largest_file_bytes = -1;          ///< RLIMIT_FSIZE
  std::vector<int> ignored_signals;      ///< SIG_IGN when the program starts.
  bool ordinary_user = false;            ///< Give up root's rights, if this process has them.
};

/// A running program. The destructor ends it with SIGKILL if it still runs.
class Process {
 public:
  Process(const std::vector<std::string>& arguments, const Launch& launch);
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  void send(int signal) const;
  /// Waits for a line on standard output that starts with `text`. Returns false if the program ends before.
  bool wait_for(const std::string& text);
  /// Waits until the program ends.
  Outcome wait();

 private:
  bool read_some();

  pid_t pid_ = -1;
  int out_ = -1, err_ = -1;
  Outcome outcome_;
};

/// A temporary folder to run the program in, with one thread by default.
class CommandLine {
 public:
  const std::string& path() const { return folder_.path(); }
  std::string operator/(const std::string& name) const { return folder_ / name; }

  Outcome run(std::vector<std::string> arguments, Launch launch = {}) const;
  /// Starts the program and returns.
  Process start(std::vector<std::string> arguments, Launch launch = {}) const;

  /// Runs shell lines in the folder, with $h as the program and one thread. Returns the exit code of the last line, or
  /// of the last program of its pipe that failed.
  int shell(const std::string& lines) const;

  void write(const std::string& name, const std::string& content) const;
  std::string read(const std::string& name) const;
  bool exists(const std::string& name) const;
  /// The paths and contents of all files below the folder; two results are equal if and only if no file changed.
  std::string everything() const;

  /// Writes text.txt, and a config for it that trains within moments; `more` is appended to the config.
  void prepare(const std::string& more = "") const;

 private:
  TemporaryFolder folder_;
};

}  // namespace handgrad::test
