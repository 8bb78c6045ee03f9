#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "handgrad/core/types.h"

namespace handgrad {

/// Converts text to tokens and back; decode(encode(text)) == text for every text that it can encode. Immutable: several
/// threads may share one. Text is a sequence of bytes: line ends, NUL and a byte order mark are not special.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  /// "byte" or "char", as in a config and in a checkpoint.
  virtual std::string_view name() const = 0;

  /// The number of tokens; ids are 0 to vocab_size() - 1.
  virtual Index vocab_size() const = 0;

  /// The tokens of `text`. Throws DataError for text that the vocabulary cannot represent.
  virtual std::vector<TokenId> encode(std::string_view text) const = 0;

  /// The bytes of one token, valid during the tokenizer's lifetime. Throws RangeError for an id outside the vocabulary.
  virtual std::string_view token_bytes(TokenId token) const = 0;

  /// The sorted code points of the vocabulary, from which rebuild_tokenizer() makes an equal tokenizer; empty for
  /// bytes.
  virtual std::vector<std::uint32_t> code_points() const = 0;

  /// The text of `tokens`. Throws RangeError for an id outside the vocabulary.
  std::string decode(std::span<const TokenId> tokens) const;

  /// The size of decode(tokens) in bytes, for bits per byte. Throws as decode does.
  Index size_bytes(std::span<const TokenId> tokens) const;

  /// A hash of kind and vocabulary: equal if (and, except by collision, only if) the same ids have the same text.
  std::uint64_t fingerprint() const;
};

/// One token per byte, 256 in total. It can encode every file.
class ByteTokenizer final : public Tokenizer {
 public:
  ByteTokenizer();
  std::string_view name() const override { return "byte"; }
  Index vocab_size() const override { return 256; }
  std::vector<TokenId> encode(std::string_view text) const override;
  std::string_view token_bytes(TokenId token) const override;
  std::vector<std::uint32_t> code_points() const override { return {}; }

 private:
  std::array<char, 256> bytes_;
};

/// One token per Unicode code point, numbered in the order of the code points. A byte order mark at the beginning of a
/// file is the character U+FEFF, and "\r\n" is two characters, so decoding restores every byte.
///
/// encode throws DataError for a character outside the vocabulary, with its position in characters (from 0) and bytes,
/// and for invalid UTF-8, with the byte offset.
class CharTokenizer final : public Tokenizer {
 public:
  /// A tokenizer whose vocabulary is the sorted set of the code points of `text`. Throws DataError if the text is empty
  /// or not valid UTF-8.
  static CharTokenizer from_text(std::string_view text);

  /// A tokenizer with a stored vocabulary, which is checked: throws DataError if it is empty, not strictly ascending,
  /// or contains a number that is not a code point.
  explicit CharTokenizer(std::vector<std::uint32_t> code_points);

  std::string_view name() const override { return "char"; }
  Index vocab_size() const override { return std::ssize(code_points_); }
  std::vector<TokenId> encode(std::string_view text) const override;
  std::string_view token_bytes(TokenId token) const override;
  std::vector<std::uint32_t> code_points() const override { return code_points_; }

 private:
  /// The id of a code point, or -1.
  TokenId find(std::uint32_t code_point) const;

  std::vector<std::uint32_t> code_points_;
  std::vector<std::string> bytes_;    ///< (V), each token in UTF-8.
  std::array<TokenId, 128> ascii_{};  ///< find() for ASCII, which most text consists of.
};

std::unique_ptr<Tokenizer> make_byte_tokenizer();

/// As CharTokenizer::from_text.
std::unique_ptr<Tokenizer> make_char_tokenizer(std::string_view text);

/// The tokenizer with this name and these code points. Throws DataError for an unknown name, for code points that
/// CharTokenizer refuses, and for a byte tokenizer with code points.
std::unique_ptr<Tokenizer> rebuild_tokenizer(std::string_view name, std::vector<std::uint32_t> code_points);

}  // namespace handgrad
