#pragma once

#include <string>
#include <string_view>

namespace handgrad {

/// The probable encoding of a text that is not UTF-8.
struct EncodingGuess {
  std::string name;      ///< "UTF-16LE", as iconv knows it; empty: nothing to say.
  std::string evidence;  ///< "it begins with FF FE"
  bool wide = false;     ///< UTF-16 or UTF-32: certain enough to refuse the text even where its bytes are valid UTF-8.
};

/// UTF-16 and UTF-32 by their byte order mark or by their NULs: text of any script has blanks and line breaks, whose
/// high bytes are 0, always at the same places. Empty for every other text.
EncodingGuess guess_wide_encoding(std::string_view bytes);

/// The same, or a guess at the 8-bit or double-byte encoding of a text that is not valid UTF-8. Empty if the text has
/// valid UTF-8 characters beyond ASCII (it is damaged, not foreign) or shows nothing.
EncodingGuess guess_encoding(std::string_view bytes);

/// "; perhaps it is WINDOWS-1252 (reason): iconv -f WINDOWS-1252 -t UTF-8 PATH > NEW"; empty without a guess.
std::string conversion_hint(const EncodingGuess& guess, std::string_view path);

}  // namespace handgrad
