#include "terminal.h"

#include "progress.h"

namespace handgrad::cli {

const char* erase_line(int descriptor) { return draws_over_lines(descriptor) ? "\r\033[K" : ""; }

}  // namespace handgrad::cli
