#include "console.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

namespace handgrad::cli {
namespace {

int output_error = 0;

void remember(bool written) {
  if (!written && output_error == 0) output_error = errno != 0 ? errno : EIO;
}

}  // namespace

void open_standard_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(stream, F_GETFD) >= 0 || errno != EBADF) continue;
    // open() returns the lowest free number, which is this one.
    if (::open("/dev/null", O_RDWR) < 0) ::memfd_create("standard stream", 0);
  }
}

void say(std::string_view text) {
  if (output_error == EPIPE) return;
  errno = 0;
  const bool taken = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
  remember(std::fflush(stdout) == 0 && taken);
}

void say_error(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
}

int standard_output_error() {
  if (output_error == EPIPE) return output_error;
  errno = 0;
  remember(std::fflush(stdout) == 0 && std::ferror(stdout) == 0);
  return output_error;
}

}  // namespace handgrad::cli
