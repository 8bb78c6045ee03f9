#pragma once

namespace handgrad::cli {

/// Whether a descriptor is a terminal that can draw over a line: neither TERM unset, dumb or emacs, nor NO_COLOR or
/// INSIDE_EMACS set.
bool draws_over_lines(int file);

/// Clears the terminal's current line; empty where nothing can be drawn over.
const char* erase_line(int descriptor);

}  // namespace handgrad::cli
