#pragma once

#include <string>
#include <string_view>

namespace handgrad::cli {

/// The layout that escaped text keeps: none (one line), or line breaks and tabs.
enum class Layout { one_line, lines };

/// Makes text safe for any terminal. Control characters (C0, DEL, C1), direction marks and bytes that are not valid
/// UTF-8 become \n, \t, \x1b, \u009b and the like; everything else is unchanged. The result is valid UTF-8. A piece of
/// a text must not end inside a character.
std::string escaped(std::string_view text, Layout layout = Layout::one_line);

/// The same in double quotes, shortened if it is long, for a value in a message.
std::string quoted_excerpt(std::string_view text);

}  // namespace handgrad::cli
