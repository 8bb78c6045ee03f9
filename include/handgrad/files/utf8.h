#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace handgrad {

/// One character of a text: its code point, and the bytes that it takes in UTF-8 (1 to 4).
struct Utf8Character {
  std::uint32_t code_point = 0;
  std::size_t size_bytes = 0;
};

/// The character that begins at byte `offset` of `text`; offset < text.size().
/// Strict: no overlong forms, no surrogates, nothing above U+10FFFF.
/// Throws DataError, which names the byte offset and what is wrong there; RangeError for an offset behind the text.
Utf8Character utf8_character(std::string_view text, std::size_t offset);

/// Throws DataError for the first byte of `text` that belongs to no character; `source` names the text ("notes.txt").
void check_utf8(std::string_view text, std::string_view source);

/// Whether a character of this number can exist: at most U+10FFFF, and no surrogate.
bool is_code_point(std::uint32_t value);

/// The UTF-8 bytes of a code point. Throws RangeError where is_code_point is false.
std::string utf8_bytes(std::uint32_t code_point);

/// For messages: 'x' (U+0078). Where a character shows nothing, or disturbs a terminal, the number alone.
std::string describe_character(std::uint32_t code_point);

/// Takes bytes piece by piece and hands them back in whole characters, for output as it is made.
/// Bytes are never changed: all that push() and flush() return is, joined, all that was pushed. A byte that belongs to
/// no character is handed on at once, on its own.
class Utf8Stream {
 public:
  /// What is complete now; the at most 3 bytes of an unfinished character are kept.
  std::string push(std::string_view bytes);

  /// The rest: an unfinished character, which the text ended in, or nothing.
  std::string flush();

 private:
  std::string pending_;
};

}  // namespace handgrad
