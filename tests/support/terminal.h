#pragma once

#include <string>
#include <vector>

namespace handgrad::test {

/// How to start the program on a terminal of its own.
struct OnTerminal {
  std::string folder;
  int columns = 80;
  std::vector<std::string> environment = {"TERM=xterm"};  ///< NAME=VALUE; NAME alone removes it.
  int later_columns = 0;  ///< The width after the first tokens/s is shown; 0: unchanged.
  std::string typed;      ///< Typed at once; Ctrl-D (\x04) ends it.
};

struct Shown {
  int exit_code = 0;
  std::string text;  ///< Everything that was sent to the terminal, output and errors; lines end with \r\n.
};

/// Runs the program with standard input, output and error on a new pseudo-terminal, and waits for its end. The exit
/// code -1 means that no terminal can be created here.
Shown run_on_terminal(const std::vector<std::string>& arguments, const OnTerminal& how);

}  // namespace handgrad::test
