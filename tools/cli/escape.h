#pragma once

#include <string>
#include <string_view>

namespace handgrad::cli {

/// What stays of the layout of an escaped text: nothing (one line), or line breaks and tabs.
enum class Layout { one_line, lines };

/// Text that can be shown on any terminal. Control characters (C0, DEL, C1), marks that change the direction of a line,
/// and bytes that are not valid UTF-8 become \n, \t, \x1b, \u009b and the like; all else stays. An escaped text is
/// always valid UTF-8. A piece of a text must not end inside a character.
std::string escaped(std::string_view text, Layout layout = Layout::one_line);

/// The same between double quotes, shortened if it is long: a value in a message.
std::string quoted_excerpt(std::string_view text);

}  // namespace handgrad::cli
