#include "handgrad/text/unknown_characters.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "handgrad/core/errors.h"
#include "handgrad/files/utf8.h"

namespace handgrad {
namespace {

constexpr std::size_t most_listed = 8;
constexpr std::uint32_t carriage_return = 0x0D, byte_order_mark = 0xFEFF;

struct Place {
  std::string file;  // empty: the text is not a file
  Index line = 1, column = 1;
};

struct Unknown {
  Index count = 0;
  Place first;
  std::uint32_t before = 0;  // the character before the first occurrence, 0 if there is none
};

using Unknowns = std::map<std::uint32_t, Unknown>;

void collect(const std::set<std::uint32_t>& known, std::string_view text, const std::string& file, Unknowns& unknowns) {
  Place place{file};
  std::uint32_t before = 0;
  for (std::size_t offset = 0; offset < text.size();) {
    const files::Utf8Character c = files::utf8_character(text, offset);
    if (!known.contains(c.code_point)) {
      Unknown& unknown = unknowns[c.code_point];
      if (unknown.count++ == 0) unknown.first = place, unknown.before = before;
    }
    offset += c.size_bytes;
    before = c.code_point;
    place.column = c.code_point == '\n' ? 1 : place.column + 1;
    place.line += c.code_point == '\n' ? 1 : 0;
  }
}

std::string shown(const Place& place) {
  return place.file.empty() ? fmt::format("line {}, character {}", place.line, place.column)
                            : fmt::format("{}, line {}, character {}", place.file, place.line, place.column);
}

std::string times(Index count) { return count == 1 ? "once" : fmt::format("{} times", count); }

// Most frequent first.
std::string list(const Unknowns& unknowns) {
  std::vector<std::pair<std::uint32_t, Unknown>> sorted(unknowns.begin(), unknowns.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.second.count > b.second.count; });
  std::string text;
  for (std::size_t i = 0; i < std::min(sorted.size(), most_listed); ++i) {
    const auto& [code_point, unknown] = sorted[i];
    text += fmt::format("{}{} {} ({}{})", i == 0 ? "" : "; ", files::describe_character(code_point),
                        times(unknown.count), unknown.count == 1 ? "" : "first in ", shown(unknown.first));
  }
  if (sorted.size() > most_listed) text += fmt::format("; and {} more", sorted.size() - most_listed);
  return text;
}

std::string advice(const Unknowns& unknowns, const std::set<std::uint32_t>& known) {
  std::string text;
  std::size_t explained = 0;
  if (unknowns.contains(carriage_return) && known.contains('\n')) {
    text += "; U+000D is part of Windows line ends (CRLF): sed 's/\\r$//' FILE > NEW converts them";
    ++explained;
  }
  if (unknowns.contains(byte_order_mark)) {
    text += "; U+FEFF is a byte order mark: sed '1s/^\\xEF\\xBB\\xBF//' FILE > NEW removes it";
    ++explained;
  }
  for (const auto& [mark, unknown] : unknowns) {
    const std::uint32_t letter = text::composed_letter(unknown.before, mark);
    if (letter == 0) continue;
    ++explained;
    text += known.contains(letter)
                ? fmt::format(
                      "; {} combines with the letter before it, and the vocabulary has the composed {}: "
                      "normalise the text to NFC",
                      files::describe_character(mark), files::describe_character(letter))
                : fmt::format("; {} combines with the letter before it to {}", files::describe_character(mark),
                              files::describe_character(letter));
  }
  if (explained < unknowns.size()) {
    text += "; remove them, or train a model with tokenizer.kind=byte, which has no unknown characters";
  }
  return text;
}

[[noreturn]] void refuse(const Tokenizer& tokenizer, const Unknowns& unknowns, std::string_view source) {
  const std::vector<std::uint32_t> code_points = tokenizer.code_points();
  const std::set<std::uint32_t> known(code_points.begin(), code_points.end());
  throw DataError(fmt::format(
      "{}: {} not in the vocabulary of {}: {}{}", source,
      unknowns.size() == 1 ? std::string("a character is") : fmt::format("{} characters are", unknowns.size()),
      text::counted(tokenizer.vocab_size(), "character"), list(unknowns), advice(unknowns, known)));
}

}  // namespace

std::vector<TokenId> encode_corpus(const Tokenizer& tokenizer, const Corpus& corpus, std::string_view source) {
  try {
    return tokenizer.encode(corpus.text);
  } catch (const DataError& error) {
    const std::vector<std::uint32_t> code_points = tokenizer.code_points();
    const std::set<std::uint32_t> known(code_points.begin(), code_points.end());
    Unknowns unknowns;
    check_utf8(corpus);
    std::string_view rest = corpus.text;
    for (const CorpusFile& file : corpus.files) {
      collect(known, rest.substr(0, file.size_bytes), file.path, unknowns);
      rest.remove_prefix(file.size_bytes);
    }
    if (unknowns.empty()) throw DataError(fmt::format("{}: {}", source, error.what()));
    refuse(tokenizer, unknowns, source);
  }
}

std::vector<TokenId> encode_text(const Tokenizer& tokenizer, std::string_view text, std::string_view source) {
  try {
    return tokenizer.encode(text);
  } catch (const DataError&) {
    files::check_utf8(text, source);
    Corpus corpus;
    corpus.text = std::string(text);
    corpus.files.push_back({"", std::ssize(text)});
    return encode_corpus(tokenizer, corpus, source);
  }
}

std::uint32_t text::composed_letter(std::uint32_t base, std::uint32_t mark) {
  struct Row {
    std::uint32_t mark;
    std::u32string_view letters, composed;
  };
  static constexpr Row rows[] = {
      {0x300, U"AEIOUaeiou", U"\u00C0\u00C8\u00CC\u00D2\u00D9\u00E0\u00E8\u00EC\u00F2\u00F9"},
      {0x301, U"AEIOUYaeiouyCcLlNnRrSsZz",
       U"\u00C1\u00C9\u00CD\u00D3\u00DA\u00DD\u00E1\u00E9\u00ED\u00F3\u00FA\u00FD\u0106\u0107\u0139\u013A\u0143\u0144"
       U"\u0154\u0155\u015A\u015B\u0179\u017A"},
      {0x302, U"AEIOUaeiou", U"\u00C2\u00CA\u00CE\u00D4\u00DB\u00E2\u00EA\u00EE\u00F4\u00FB"},
      {0x303, U"ANOano", U"\u00C3\u00D1\u00D5\u00E3\u00F1\u00F5"},
      {0x308, U"AEIOUaeiouy", U"\u00C4\u00CB\u00CF\u00D6\u00DC\u00E4\u00EB\u00EF\u00F6\u00FC\u00FF"},
      {0x30A, U"AaUu", U"\u00C5\u00E5\u016E\u016F"},
      {0x30B, U"OoUu", U"\u0150\u0151\u0170\u0171"},
      {0x30C, U"CcDdEeNnRrSsTtZz",
       U"\u010C\u010D\u010E\u010F\u011A\u011B\u0147\u0148\u0158\u0159\u0160\u0161\u0164\u0165\u017D\u017E"},
      {0x327, U"CcSsTt", U"\u00C7\u00E7\u015E\u015F\u0162\u0163"},
      {0x328, U"AaEe", U"\u0104\u0105\u0118\u0119"}};
  for (const Row& row : rows) {
    const std::size_t at = row.mark == mark ? row.letters.find(static_cast<char32_t>(base)) : std::u32string_view::npos;
    if (at != std::u32string_view::npos) return row.composed[at];
  }
  return 0;
}

}  // namespace handgrad
