#pragma once

#include <string>
#include <string_view>

namespace handgrad::files {

/// The probable encoding of a text that is not UTF-8.
struct EncodingGuess {
  std::string name;      ///< "UTF-16LE", as iconv names it; empty: no guess.
  std::string evidence;  ///< "it begins with FF FE"
  bool wide = false;     ///< UTF-16 or UTF-32: the text is refused even if its bytes are valid UTF-8.
};

/// Recognises UTF-16 and UTF-32, by the byte order mark or by the positions of NULs: blanks and line breaks occur in
/// every script, and their high bytes are 0. Empty for every other text.
EncodingGuess guess_wide_encoding(std::string_view bytes);

/// The same, and otherwise a guess at the 8-bit or double-byte encoding of a text that is not valid UTF-8. Empty if the
/// text contains valid UTF-8 characters beyond ASCII (it is damaged UTF-8) or gives no evidence.
EncodingGuess guess_encoding(std::string_view bytes);

/// "; perhaps it is WINDOWS-1252 (reason): iconv -f WINDOWS-1252 -t UTF-8 PATH > NEW"; empty without a guess.
std::string conversion_hint(const EncodingGuess& guess, std::string_view path);

}  // namespace handgrad::files
