#pragma once

#include <string>
#include <string_view>

namespace handgrad {

/// Text as a TOML string, quotes and escapes included.
std::string quoted(std::string_view text);

/// Is the text well-formed UTF-8 (no overlong forms, no surrogates)?
bool is_utf8(std::string_view text);

/// Control characters as \n, \u001b and so on, so that a message stays one line and steers no terminal.
std::string one_line(std::string_view text);

/// A quoted text, shortened if it is long, for messages.
std::string excerpt(std::string_view text);

/// Single-character insertions, deletions, changes and swaps of neighbours that turn one text into the other.
int edit_distance(std::string_view a, std::string_view b);

}  // namespace handgrad
