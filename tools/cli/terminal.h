#pragma once

namespace handgrad::cli {

/// True if the descriptor is a terminal that understands escape sequences: TERM is set and is not "dumb".
bool is_capable_terminal(int descriptor);

/// What clears the terminal's current line; empty where there is no capable terminal.
const char* erase_line(int descriptor);

}  // namespace handgrad::cli
