#include "terminal.h"

#include <unistd.h>

#include <cstdlib>
#include <string_view>

namespace handgrad::cli {
namespace {

bool is_set(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0';
}

}  // namespace

bool draws_over_lines(int file) {
  if (isatty(file) != 1 || !is_set("TERM") || is_set("NO_COLOR") || is_set("INSIDE_EMACS")) return false;
  const std::string_view terminal = std::getenv("TERM");
  return terminal != "dumb" && !terminal.starts_with("emacs");
}

const char* erase_line(int descriptor) { return draws_over_lines(descriptor) ? "\r\033[K" : ""; }

}  // namespace handgrad::cli
