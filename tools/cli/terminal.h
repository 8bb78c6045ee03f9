#pragma once

namespace handgrad::cli {

/// Is the descriptor a terminal that can overwrite a line? Not if TERM is unset, dumb or emacs, or if NO_COLOR or
/// INSIDE_EMACS is set.
bool draws_over_lines(int file);

/// The text that clears the current line of a terminal; empty if lines cannot be overwritten.
const char* erase_line(int descriptor);

}  // namespace handgrad::cli
