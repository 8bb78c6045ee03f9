#include "support/terminal.h"

#include <fcntl.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

namespace handgrad::test {
namespace {

void become(const OnTerminal& how) {
  if (::chdir(how.folder.c_str()) != 0) ::_exit(126);
  for (const char* name : {"TERM", "NO_COLOR", "INSIDE_EMACS"}) ::unsetenv(name);
  ::setenv("OMP_WAIT_POLICY", "passive", 1);
  ::setenv("OMP_NUM_THREADS", "1", 1);
  for (const std::string& entry : how.environment) {
    const std::size_t equals = entry.find('=');
    if (equals == std::string::npos) continue;
    ::setenv(entry.substr(0, equals).c_str(), entry.substr(equals + 1).c_str(), 1);
  }
}

}  // namespace

Shown run_on_terminal(const std::vector<std::string>& arguments, const OnTerminal& how) {
  winsize size{};
  size.ws_row = 24;
  size.ws_col = static_cast<unsigned short>(how.columns);
  int terminal = -1;
  const pid_t child = ::forkpty(&terminal, nullptr, nullptr, &size);
  if (child < 0) return {-1, ""};
  if (child == 0) {
    become(how);
    std::vector<char*> argv{const_cast<char*>(HANDGRAD_BINARY)};
    for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
    argv.push_back(nullptr);
    ::execv(HANDGRAD_BINARY, argv.data());
    ::_exit(127);
  }
  Shown shown;
  if (!how.typed.empty() && ::write(terminal, how.typed.data(), how.typed.size()) < 0) shown.exit_code = -1;
  char buffer[4096];
  for (ssize_t taken; (taken = ::read(terminal, buffer, sizeof buffer)) > 0;) {
    shown.text.append(buffer, static_cast<std::size_t>(taken));
    if (how.later_columns == 0 || shown.text.find("tokens/s") == std::string::npos) continue;
    size.ws_col = static_cast<unsigned short>(how.later_columns);
    ::ioctl(terminal, TIOCSWINSZ, &size);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  ::close(terminal);
  shown.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return shown;
}

}  // namespace handgrad::test
