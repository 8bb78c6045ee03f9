#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace handgrad::files {

/// A character of a text: its code point and its length in UTF-8, 1 to 4 bytes.
struct Utf8Character {
  std::uint32_t code_point = 0;
  std::size_t size_bytes = 0;
};

/// The character that begins at byte `offset` of `text`. Overlong forms, surrogates and numbers above U+10FFFF are
/// errors. Throws DataError with the byte offset and the fault, RangeError unless offset < text.size().
Utf8Character utf8_character(std::string_view text, std::size_t offset);

/// Does `text` consist of whole, valid characters?
bool is_utf8(std::string_view text);

/// Is `text` valid except for an incomplete character at its end?
bool is_cut_short(std::string_view text);

/// Throws DataError for the first byte of `text` that is not part of a valid character. `source` names the text in the
/// message ("notes.txt").
void check_utf8(std::string_view text, std::string_view source);

/// Is the number a code point: at most U+10FFFF and not a surrogate?
bool is_code_point(std::uint32_t value);

/// The UTF-8 bytes of a code point. Throws RangeError if is_code_point is false.
std::string utf8_bytes(std::uint32_t code_point);

/// For messages: 'x' (U+0078); only the number if the character is invisible or could disturb a terminal.
std::string describe_character(std::uint32_t code_point);

/// Regroups a stream of bytes into whole characters. Bytes never change: the joined results of push() and flush() equal
/// the joined inputs. A byte that is not part of a valid character is returned at once, on its own.
class Utf8Stream {
 public:
  /// Returns the characters that are complete; at most 3 bytes of an incomplete one are kept.
  std::string push(std::string_view bytes);

  /// Returns the bytes of an incomplete character at the end of the text.
  std::string flush();

 private:
  std::string pending_;
};

}  // namespace handgrad::files
