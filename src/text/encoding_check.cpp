#include "handgrad/text/encoding_check.h"

#include <fmt/format.h>

#include <string>

#include "handgrad/core/errors.h"
#include "handgrad/files/encoding.h"
#include "handgrad/files/utf8.h"

namespace handgrad {

void check_encoding(std::string_view text, std::string_view source, std::string_view path) {
  try {
    check_utf8(text, source);
  } catch (const DataError& error) {
    const std::string what = error.what();
    const bool cut = what.find("the text ends inside") != std::string::npos;  // says nothing of the encoding
    throw DataError(what + (cut ? "" : conversion_hint(guess_encoding(text), path)));
  }
  const EncodingGuess guess = guess_wide_encoding(text);
  if (!guess.name.empty()) {
    throw DataError(fmt::format("{}: not UTF-8 text: byte offset {} is NUL{}", source, text.find('\0'),
                                conversion_hint(guess, path)));
  }
}

}  // namespace handgrad
