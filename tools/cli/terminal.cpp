#include "terminal.h"

#include <unistd.h>

#include <cstdlib>
#include <string_view>

namespace handgrad::cli {

bool is_capable_terminal(int descriptor) {
  if (::isatty(descriptor) != 1) return false;
  const char* term = std::getenv("TERM");
  return term != nullptr && *term != '\0' && std::string_view(term) != "dumb";
}

const char* erase_line(int descriptor) { return is_capable_terminal(descriptor) ? "\r\033[K" : ""; }

}  // namespace handgrad::cli
