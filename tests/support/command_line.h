#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "support/temporary_folder.h"

namespace handgrad::test {

struct Outcome {
  int exit_code = 0;  ///< As a shell has it: 128 + the signal that ended the program.
  std::string out, err;

  std::string first_error() const { return err.substr(0, err.find('\n')); }
  std::string last_line() const;
};

/// How to start the program; what is not set is as for this process.
struct Launch {
  std::string folder;                    ///< To start in.
  std::string input;                     ///< Standard input.
  std::vector<std::string> environment;  ///< NAME=VALUE
  long largest_file_bytes = -1;          ///< RLIMIT_FSIZE
  std::vector<int> ignored_signals;      ///< SIG_IGN when the program starts.
  bool ordinary_user = false;            ///< Give up root's rights, if this process has them.
};

/// The program, started and not waited for. Ended with SIGKILL if it outlives this object.
class Process {
 public:
  Process(const std::vector<std::string>& arguments, const Launch& launch);
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  void send(int signal) const;
  /// Waits until a line that starts with `text` has come on standard output; false if the program ended before.
  bool wait_for(const std::string& text);
  /// Waits for the end.
  Outcome wait();

 private:
  bool read_some();

  pid_t pid_ = -1;
  int out_ = -1, err_ = -1;
  Outcome outcome_;
};

/// A temporary folder to run the program in, on one thread unless told otherwise.
class CommandLine {
 public:
  const std::string& path() const { return folder_.path(); }
  std::string operator/(const std::string& name) const { return folder_ / name; }

  Outcome run(std::vector<std::string> arguments, Launch launch = {}) const;
  /// Starts it and comes back.
  Process start(std::vector<std::string> arguments, Launch launch = {}) const;

  /// Runs lines of the shell in the folder, with $h for the program and one thread; the exit code of the last line, or
  /// of the last program of its pipe that failed.
  int shell(const std::string& lines) const;

  void write(const std::string& name, const std::string& content) const;
  std::string read(const std::string& name) const;
  bool exists(const std::string& name) const;
  /// Every file below the folder with its content: equal if and only if nothing was touched.
  std::string everything() const;

  /// Writes text.txt, and a config over it that trains in moments; `more` is appended to it.
  void prepare(const std::string& more = "") const;

 private:
  TemporaryFolder folder_;
};

}  // namespace handgrad::test
