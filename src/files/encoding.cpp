#include "handgrad/files/encoding.h"

#include <fmt/format.h>

#include <array>
#include <cstddef>

namespace handgrad::files {
namespace {

// Bytes to examine: a multiple of 4.
constexpr std::size_t sample_bytes = std::size_t{1} << 20;

unsigned byte_at(std::string_view bytes, std::size_t i) { return static_cast<unsigned char>(bytes[i]); }

EncodingGuess by_mark(std::string_view bytes) {
  using namespace std::string_view_literals;
  struct Mark {
    std::string_view bytes;
    const char *name, *shown;
  };
  // Longer marks first: that of UTF-32LE begins with that of UTF-16LE.
  constexpr Mark marks[] = {{"\xFF\xFE\0\0"sv, "UTF-32", "FF FE 00 00"},
                            {"\0\0\xFE\xFF"sv, "UTF-32", "00 00 FE FF"},
                            {"\xFF\xFE"sv, "UTF-16", "FF FE"},
                            {"\xFE\xFF"sv, "UTF-16", "FE FF"}};
  for (const Mark& mark : marks) {
    if (bytes.starts_with(mark.bytes)) return {mark.name, fmt::format("it begins with {}", mark.shown), true};
  }
  return {};
}

EncodingGuess by_nuls(std::string_view bytes) {
  if (bytes.size() < 16 || bytes.size() % 2 != 0) return {};
  const bool cut = bytes.size() > sample_bytes;
  bytes = bytes.substr(0, sample_bytes);
  std::array<std::size_t, 4> nuls{}, lasts{};  // by position modulo 4
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    nuls[i % 4] += bytes[i] == '\0' ? 1 : 0;
    lasts[i % 4] += bytes[i] == '\xFF' ? 1 : 0;
  }
  const std::size_t quarter = bytes.size() / 4, all = nuls[0] + nuls[1] + nuls[2] + nuls[3];
  const auto nearly_all = [&](std::size_t count) { return 10 * count > 9 * quarter; };
  const auto nearly_none = [&](std::size_t count) { return 10 * count < quarter; };
  const std::string evidence = fmt::format("{} of its {}{} bytes are NUL", all, cut ? "first " : "", bytes.size());
  if (nearly_all(nuls[2]) && nearly_all(nuls[3]) && nearly_none(nuls[0])) return {"UTF-32LE", evidence, true};
  if (nearly_all(nuls[0]) && nearly_all(nuls[1]) && nearly_none(nuls[3])) return {"UTF-32BE", evidence, true};
  const auto high_bytes = [&](std::size_t high, std::size_t low) {
    const std::size_t in_high = nuls[high] + nuls[high + 2], in_low = nuls[low] + nuls[low + 2];
    // FF in the high byte: small negative values of 16-bit sound samples, not text.
    return in_high >= 4 && 10 * in_high >= bytes.size() / 2 && 10 * in_low <= in_high &&
           10 * (lasts[high] + lasts[high + 2]) <= in_high;
  };
  if (high_bytes(1, 0)) return {"UTF-16LE", evidence, true};
  if (high_bytes(0, 1)) return {"UTF-16BE", evidence, true};
  return {};
}

// The number of bytes, from 0x80 on, that are part of well-formed characters of two to four bytes.
std::size_t bytes_in_utf8_characters(std::string_view bytes) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < bytes.size();) {
    const unsigned first = byte_at(bytes, i);
    const std::size_t size = first >= 0xC2u && first <= 0xDFu   ? 2
                             : first >= 0xE0u && first <= 0xEFu ? 3
                             : first >= 0xF0u && first <= 0xF4u ? 4
                                                                : 1;
    std::size_t found = 1;
    while (found < size && i + found < bytes.size() && (byte_at(bytes, i + found) & 0xC0u) == 0x80u) ++found;
    if (size > 1 && found == size) count += size;
    i += found;
  }
  return count;
}

}  // namespace

EncodingGuess guess_wide_encoding(std::string_view bytes) {
  EncodingGuess guess = by_mark(bytes);
  return guess.name.empty() ? by_nuls(bytes) : guess;
}

// Evidence: in Western text, letters beyond ASCII are single bytes between ASCII letters. Cyrillic words are runs of
// bytes from C0 to FF. East Asian text consists of pairs of bytes from 81 to FE, and kana begin with 82 or 83.
EncodingGuess guess_encoding(std::string_view bytes) {
  const EncodingGuess wide = guess_wide_encoding(bytes);
  if (!wide.name.empty()) return wide;
  if (bytes.find('\0') != std::string_view::npos) return {};  // binary data
  std::size_t high = 0, adjacent = 0, letters = 0, kana = 0, last = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const unsigned byte = byte_at(bytes, i);
    if (byte < 0x80u) continue;
    const bool before = i > 0 && byte_at(bytes, i - 1) >= 0x80u;
    const bool after = i + 1 < bytes.size() && byte_at(bytes, i + 1) >= 0x80u;
    ++high;
    adjacent += before || after ? 1 : 0;
    letters += byte >= 0xC0u ? 1 : 0;
    kana += byte == 0x82u || byte == 0x83u ? 1 : 0;
    last += byte == 0xFFu ? 1 : 0;
  }
  if (high == 0 || 2 * bytes_in_utf8_characters(bytes) > high) return {};  // damaged UTF-8
  if (2 * adjacent <= high) {
    return last > 0 ? EncodingGuess{} : EncodingGuess{"WINDOWS-1252", "single bytes from 80 to FE", false};
  }
  if (high < 4) return {};
  if (10 * letters >= 9 * high) return {"WINDOWS-1251", "words of bytes from C0 to FF", false};
  if (last > 0) return {};
  return 4 * kana >= high ? EncodingGuess{"SHIFT_JIS", "pairs that begin with 82 or 83", false}
                          : EncodingGuess{"GB18030", "pairs of bytes from 81 to FE", false};
}

std::string conversion_hint(const EncodingGuess& guess, std::string_view path) {
  if (guess.name.empty()) return "";
  std::string file = " ";
  constexpr std::string_view plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./+-";
  if (path.find_first_not_of(plain) == std::string_view::npos) {
    file += path;
  } else {
    file += '\'';
    for (const char c : path) file += c == '\'' ? std::string("'\\''") : std::string(1, c);
    file += '\'';
  }
  return fmt::format("; {} {} ({}): iconv -f {} -t UTF-8{} > NEW", guess.wide ? "it looks like" : "perhaps it is",
                     guess.name, guess.evidence, guess.name, path.empty() ? "" : file);
}

}  // namespace handgrad::files
