#pragma once

#include <string>
#include <string_view>

namespace handgrad::config {

/// Text as a TOML string, with quotes and escapes.
std::string quoted(std::string_view text);

/// Escapes control characters (\n, \u001b), so that a message is one line and cannot control a terminal.
std::string one_line(std::string_view text);

/// A quoted text for messages, shortened if it is long.
std::string excerpt(std::string_view text);

/// The least number of insertions, deletions, changes and swaps of neighbouring characters that turn `a` into `b`.
int edit_distance(std::string_view a, std::string_view b);

}  // namespace handgrad::config
