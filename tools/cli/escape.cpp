#include "escape.h"

#include <fmt/format.h>

#include <cstdint>

#include "handgrad/core/errors.h"
#include "handgrad/files/utf8.h"

namespace handgrad::cli {
namespace {

constexpr std::size_t excerpt_bytes = 60;

bool is_control(std::uint32_t c) { return c < 0x20u || (c >= 0x7Fu && c <= 0x9Fu); }

// Line and paragraph separators; embeddings, overrides and isolates of text direction.
bool changes_the_line(std::uint32_t c) {
  return c == 0x061Cu || c == 0x200Eu || c == 0x200Fu || (c >= 0x2028u && c <= 0x202Eu) ||
         (c >= 0x2066u && c <= 0x2069u);
}

void append(std::string& result, const files::Utf8Character& c, std::string_view bytes, Layout layout) {
  const bool layout_kept = layout == Layout::lines && (c.code_point == '\n' || c.code_point == '\t');
  if (layout_kept || (!is_control(c.code_point) && !changes_the_line(c.code_point))) {
    result += bytes;
  } else if (c.code_point == '\n') {
    result += "\\n";
  } else if (c.code_point == '\t') {
    result += "\\t";
  } else if (c.code_point == '\r') {
    result += "\\r";
  } else {
    result += c.code_point < 0x80u ? fmt::format("\\x{:02x}", c.code_point) : fmt::format("\\u{:04x}", c.code_point);
  }
}

}  // namespace

std::string escaped(std::string_view text, Layout layout) {
  std::string result;
  for (std::size_t offset = 0; offset < text.size();) {
    try {
      const files::Utf8Character c = files::utf8_character(text, offset);
      append(result, c, text.substr(offset, c.size_bytes), layout);
      offset += c.size_bytes;
    } catch (const DataError&) {  // no character begins here
      result += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[offset++]));
    }
  }
  return result;
}

std::string quoted_excerpt(std::string_view text) {
  std::size_t size = std::min(text.size(), excerpt_bytes);
  while (size < text.size() && size > 0 && (static_cast<unsigned char>(text[size]) & 0xC0u) == 0x80u) --size;
  return fmt::format("\"{}\"{}", escaped(text.substr(0, size)), size < text.size() ? "..." : "");
}

}  // namespace handgrad::cli
