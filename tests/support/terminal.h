#pragma once

#include <string>
#include <vector>

namespace handgrad::test {

/// How to start the program on a terminal of its own.
struct OnTerminal {
  std::string folder;
  int columns = 80;
  std::vector<std::string> environment = {"TERM=xterm"};  ///< NAME=VALUE; NAME alone removes it.
  int later_columns = 0;                                  ///< The width once a rate has been shown; 0: as before.
  std::string typed;                                      ///< Typed at once; Ctrl-D (\x04) ends it.
};

struct Shown {
  int exit_code = 0;
  std::string text;  ///< All that the terminal was sent, output and errors, with \r\n at the end of a line.
};

/// Runs the program with standard input, output and error on a new pseudo-terminal, and waits for its end. An exit code
/// of -1: no terminal can be made here.
Shown run_on_terminal(const std::vector<std::string>& arguments, const OnTerminal& how);

}  // namespace handgrad::test
