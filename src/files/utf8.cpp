#include "handgrad/files/utf8.h"

#include <fmt/format.h>

#include <utility>

#include "handgrad/core/errors.h"

namespace handgrad::files {
namespace {

constexpr std::uint32_t last_code_point = 0x10FFFF;

enum class Fault { none, no_start, no_continuation, overlong, surrogate, too_large, cut_short };

// The character at `offset`, or its fault and the number of bytes read up to it.
struct Step {
  Fault fault = Fault::none;
  Utf8Character character;
};

// The first byte restricts the second. Overlong forms, surrogates and numbers above U+10FFFF are recognised here,
// before a third byte is available.
Fault second_byte_fault(unsigned first, unsigned second) {
  if ((second & 0xC0u) != 0x80u) return Fault::no_continuation;
  if ((first == 0xE0u && second < 0xA0u) || (first == 0xF0u && second < 0x90u)) return Fault::overlong;
  if (first == 0xEDu && second > 0x9Fu) return Fault::surrogate;
  if (first == 0xF4u && second > 0x8Fu) return Fault::too_large;
  return Fault::none;
}

Step step(std::string_view text, std::size_t offset) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[offset + i]); };
  const unsigned first = byte(0);
  if (first < 0x80u) return {Fault::none, {first, 1}};
  if (first < 0xC0u) return {Fault::no_start, {0, 1}};
  if (first < 0xC2u) return {Fault::overlong, {0, 1}};
  if (first > 0xF7u) return {Fault::no_start, {0, 1}};
  if (first > 0xF4u) return {Fault::too_large, {0, 1}};
  const std::size_t size = first < 0xE0u ? 2 : first < 0xF0u ? 3 : 4;
  std::uint32_t code_point = first & (0x7Fu >> size);
  for (std::size_t i = 1; i < size; ++i) {
    if (offset + i >= text.size()) return {Fault::cut_short, {0, i}};
    const unsigned next = byte(i);
    const Fault fault = i == 1                    ? second_byte_fault(first, next)
                        : (next & 0xC0u) == 0x80u ? Fault::none
                                                  : Fault::no_continuation;
    if (fault != Fault::none) return {fault, {0, i}};
    code_point = (code_point << 6) | (next & 0x3Fu);
  }
  return {Fault::none, {code_point, size}};
}

std::string explain(Fault fault, std::string_view text, std::size_t offset) {
  const auto hex = [&](std::size_t i) { return fmt::format("0x{:02X}", static_cast<unsigned char>(text[i])); };
  switch (fault) {
    case Fault::no_start:
      return fmt::format("byte {} cannot begin a character", hex(offset));
    case Fault::no_continuation:
      return fmt::format("the character that begins with {} is incomplete", hex(offset));
    case Fault::overlong:
      return fmt::format("{} begins an overlong form", hex(offset));
    case Fault::surrogate:
      return fmt::format("{} {} begins a surrogate", hex(offset), hex(offset + 1));
    case Fault::too_large:
      return fmt::format("{} begins a number above U+10FFFF", hex(offset));
    case Fault::cut_short:
      return fmt::format("the text ends inside the character that begins with {}", hex(offset));
    case Fault::none:
      break;
  }
  return {};
}

}  // namespace

Utf8Character utf8_character(std::string_view text, std::size_t offset) {
  if (offset >= text.size()) {
    throw RangeError(fmt::format("utf8_character: offset must be less than the size {}, got {}", text.size(), offset));
  }
  const Step found = step(text, offset);
  if (found.fault != Fault::none) {
    throw DataError(fmt::format("invalid UTF-8 at byte offset {}: {}", offset, explain(found.fault, text, offset)));
  }
  return found.character;
}

namespace {

// The offset of the first byte that is not part of a valid character; text.size() if there is none.
std::size_t valid_bytes(std::string_view text) {
  std::size_t offset = 0;
  while (offset < text.size()) {
    const Step found = step(text, offset);
    if (found.fault != Fault::none) break;
    offset += found.character.size_bytes;
  }
  return offset;
}

}  // namespace

bool is_utf8(std::string_view text) { return valid_bytes(text) == text.size(); }

bool is_cut_short(std::string_view text) {
  const std::size_t offset = valid_bytes(text);
  return offset < text.size() && step(text, offset).fault == Fault::cut_short;
}

void check_utf8(std::string_view text, std::string_view source) {
  const std::size_t offset = valid_bytes(text);
  if (offset == text.size()) return;
  const Fault fault = step(text, offset).fault;
  throw DataError(fmt::format("{}: invalid UTF-8 at byte offset {}: {}", source, offset, explain(fault, text, offset)));
}

bool is_code_point(std::uint32_t value) { return value <= last_code_point && (value < 0xD800u || value > 0xDFFFu); }

std::string utf8_bytes(std::uint32_t code_point) {
  if (!is_code_point(code_point)) throw RangeError(fmt::format("utf8_bytes: 0x{:X} is not a code point", code_point));
  const auto low_bits = [&](int shift) { return static_cast<char>(0x80u | ((code_point >> shift) & 0x3Fu)); };
  if (code_point < 0x80u) return {static_cast<char>(code_point)};
  if (code_point < 0x800u) return {static_cast<char>(0xC0u | (code_point >> 6)), low_bits(0)};
  if (code_point < 0x10000u) return {static_cast<char>(0xE0u | (code_point >> 12)), low_bits(6), low_bits(0)};
  return {static_cast<char>(0xF0u | (code_point >> 18)), low_bits(12), low_bits(6), low_bits(0)};
}

std::string describe_character(std::uint32_t code_point) {
  // Not shown: controls, blanks other than the space, joiners, direction marks, the byte order mark, combining marks.
  const bool shows =
      code_point >= 0x20u && !(code_point >= 0x7Fu && code_point <= 0xA0u) && code_point != 0xADu &&
      !(code_point >= 0x300u && code_point <= 0x36Fu) && !(code_point >= 0x2000u && code_point <= 0x200Fu) &&
      !(code_point >= 0x2028u && code_point <= 0x202Fu) && !(code_point >= 0x205Fu && code_point <= 0x206Fu) &&
      !(code_point >= 0xFE00u && code_point <= 0xFE0Fu) && code_point != 0xFEFFu;
  const std::string number = fmt::format("U+{:04X}", code_point);
  return shows && is_code_point(code_point) ? fmt::format("'{}' ({})", utf8_bytes(code_point), number) : number;
}

std::string Utf8Stream::push(std::string_view bytes) {
  pending_ += bytes;
  std::size_t done = 0;
  while (done < pending_.size()) {
    const Step found = step(pending_, done);
    if (found.fault == Fault::cut_short) break;
    done += found.fault == Fault::none ? found.character.size_bytes : 1;
  }
  std::string whole = pending_.substr(0, done);
  pending_.erase(0, done);
  return whole;
}

std::string Utf8Stream::flush() { return std::exchange(pending_, {}); }

}  // namespace handgrad::files
