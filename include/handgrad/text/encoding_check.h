#pragma once

#include <string_view>

namespace handgrad::text {

/// Throws DataError if a text is not UTF-8, or if it is UTF-16 of ASCII letters, which is valid UTF-8 with NULs. The
/// message contains the source, the byte offset and, if there is evidence, the encoding and the iconv command for
/// `path` (empty: no file).
void check_encoding(std::string_view text, std::string_view source, std::string_view path = {});

}  // namespace handgrad::text
