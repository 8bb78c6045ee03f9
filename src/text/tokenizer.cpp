#include "handgrad/text/tokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "handgrad/core/errors.h"
#include "handgrad/files/utf8.h"

namespace handgrad {
namespace {

void check_token(TokenId token, Index vocab_size) {
  if (token < 0 || token >= vocab_size) {
    throw RangeError(fmt::format("token {} is outside the vocabulary of {} tokens", token, vocab_size));
  }
}

// token_bytes(), but errors contain the index of the token.
std::string_view bytes_at(const Tokenizer& tokenizer, std::span<const TokenId> tokens, std::size_t i) {
  if (tokens[i] < 0 || tokens[i] >= tokenizer.vocab_size()) {
    throw RangeError(fmt::format("decode: token {} at index {} is outside the vocabulary of {} tokens", tokens[i], i,
                                 tokenizer.vocab_size()));
  }
  return tokenizer.token_bytes(tokens[i]);
}

}  // namespace

std::string Tokenizer::decode(std::span<const TokenId> tokens) const {
  std::string text;
  text.reserve(tokens.size());
  for (std::size_t i = 0; i < tokens.size(); ++i) text += bytes_at(*this, tokens, i);
  return text;
}

Index Tokenizer::size_bytes(std::span<const TokenId> tokens) const {
  Index size = 0;
  for (std::size_t i = 0; i < tokens.size(); ++i) size += std::ssize(bytes_at(*this, tokens, i));
  return size;
}

// FNV-1a, 64 bits (Fowler, Noll and Vo), over the name, a zero byte, and the code points in little-endian order.
std::uint64_t Tokenizer::fingerprint() const {
  std::uint64_t hash = 0xCBF29CE484222325u;
  const auto add = [&hash](std::uint32_t byte) { hash = (hash ^ (byte & 0xFFu)) * 0x100000001B3u; };
  for (const char c : name()) add(static_cast<unsigned char>(c));
  add(0);
  for (const std::uint32_t code_point : code_points()) {
    for (int shift = 0; shift < 32; shift += 8) add(code_point >> shift);
  }
  return hash;
}

ByteTokenizer::ByteTokenizer() : bytes_{} {
  for (std::size_t i = 0; i < bytes_.size(); ++i) bytes_[i] = static_cast<char>(i);
}

std::vector<TokenId> ByteTokenizer::encode(std::string_view text) const {
  std::vector<TokenId> tokens(text.size());
  std::transform(text.begin(), text.end(), tokens.begin(), [](char c) { return static_cast<unsigned char>(c); });
  return tokens;
}

std::string_view ByteTokenizer::token_bytes(TokenId token) const {
  check_token(token, vocab_size());
  return {&bytes_[token], 1};
}

CharTokenizer CharTokenizer::from_text(std::string_view text) {
  if (text.empty()) throw DataError("char tokenizer: the text for the vocabulary is empty");
  std::vector<bool> seen(0x110000, false);
  for (std::size_t offset = 0; offset < text.size();) {
    const files::Utf8Character c = files::utf8_character(text, offset);
    seen[c.code_point] = true;
    offset += c.size_bytes;
  }
  std::vector<std::uint32_t> code_points;
  for (std::uint32_t c = 0; c < seen.size(); ++c) {
    if (seen[c]) code_points.push_back(c);
  }
  return CharTokenizer(std::move(code_points));
}

CharTokenizer::CharTokenizer(std::vector<std::uint32_t> code_points) : code_points_(std::move(code_points)) {
  if (code_points_.empty()) throw DataError("char vocabulary: must have at least one code point, got none");
  for (std::size_t i = 0; i < code_points_.size(); ++i) {
    if (!files::is_code_point(code_points_[i])) {
      throw DataError(
          fmt::format("char vocabulary: entry {} is 0x{:X}, which is not a code point", i, code_points_[i]));
    }
    if (i > 0 && code_points_[i] <= code_points_[i - 1]) {
      throw DataError(fmt::format("char vocabulary: entry {} is U+{:04X} after U+{:04X}; code points must ascend", i,
                                  code_points_[i], code_points_[i - 1]));
    }
  }
  ascii_.fill(-1);
  bytes_.reserve(code_points_.size());
  for (const std::uint32_t code_point : code_points_) {
    if (code_point < ascii_.size()) ascii_[code_point] = static_cast<TokenId>(bytes_.size());
    bytes_.push_back(files::utf8_bytes(code_point));
  }
}

TokenId CharTokenizer::find(std::uint32_t code_point) const {
  if (code_point < ascii_.size()) return ascii_[code_point];
  const auto place = std::lower_bound(code_points_.begin(), code_points_.end(), code_point);
  if (place == code_points_.end() || *place != code_point) return -1;
  return static_cast<TokenId>(place - code_points_.begin());
}

std::vector<TokenId> CharTokenizer::encode(std::string_view text) const {
  std::vector<TokenId> tokens;
  tokens.reserve(text.size());
  for (std::size_t offset = 0; offset < text.size();) {
    const files::Utf8Character c = files::utf8_character(text, offset);
    const TokenId token = find(c.code_point);
    if (token < 0) {
      throw DataError(fmt::format(
          "unknown character {} at character {} (byte offset {}): it is not one of the {} characters of the vocabulary",
          files::describe_character(c.code_point), tokens.size(), offset, vocab_size()));
    }
    tokens.push_back(token);
    offset += c.size_bytes;
  }
  return tokens;
}

std::string_view CharTokenizer::token_bytes(TokenId token) const {
  check_token(token, vocab_size());
  return bytes_[token];
}

std::unique_ptr<Tokenizer> make_byte_tokenizer() { return std::make_unique<ByteTokenizer>(); }

std::unique_ptr<Tokenizer> make_char_tokenizer(std::string_view text) {
  return std::make_unique<CharTokenizer>(CharTokenizer::from_text(text));
}

std::unique_ptr<Tokenizer> rebuild_tokenizer(std::string_view name, std::vector<std::uint32_t> code_points) {
  if (name == "char") return std::make_unique<CharTokenizer>(std::move(code_points));
  if (name != "byte") throw DataError(fmt::format("unknown tokenizer '{}': expected byte or char", name));
  if (!code_points.empty()) {
    throw DataError(fmt::format("byte tokenizer: must have no code points, got {}", code_points.size()));
  }
  return make_byte_tokenizer();
}

}  // namespace handgrad
