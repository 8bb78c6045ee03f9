#pragma once

#include <string_view>

namespace handgrad {

/// Throws DataError if a text is not UTF-8, or only looks valid because UTF-16 of plain letters is ASCII and NULs. The
/// message names the source and the byte offset and, where the bytes show it, the encoding and how to convert it.
/// `path`: the file that iconv would be given; empty: none.
void check_encoding(std::string_view text, std::string_view source, std::string_view path = {});

}  // namespace handgrad
