#include "handgrad/text/encoding_check.h"

#include <fmt/format.h>

#include <string>

#include "handgrad/core/errors.h"
#include "handgrad/files/encoding.h"
#include "handgrad/files/utf8.h"

namespace handgrad::text {

void check_encoding(std::string_view text, std::string_view source, std::string_view path) {
  try {
    files::check_utf8(text, source);
  } catch (const DataError& error) {
    // A text that is cut short is UTF-8 nevertheless.
    const bool cut = files::is_cut_short(text);
    throw DataError(error.what() + (cut ? "" : files::conversion_hint(files::guess_encoding(text), path)));
  }
  const files::EncodingGuess guess = files::guess_wide_encoding(text);
  if (!guess.name.empty()) {
    throw DataError(fmt::format("{}: not UTF-8 text: byte offset {} is NUL{}", source, text.find('\0'),
                                files::conversion_hint(guess, path)));
  }
}

}  // namespace handgrad::text
