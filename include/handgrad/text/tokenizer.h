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

/// Turns text into tokens and back; decode(encode(text)) == text for every text that it can encode. Immutable: many
/// threads may use one. Text is bytes, exactly: line ends, NUL and a byte order mark are characters like any other.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  /// "byte" or "char", as in a config and in a checkpoint.
  virtual std::string_view name() const = 0;

  /// The number of tokens; ids are 0 to vocab_size() - 1.
  virtual Index vocab_size() const = 0;

  /// The tokens of `text`. Throws DataError for text that this vocabulary cannot write.
  virtual std::vector<TokenId> encode(std::string_view text) const = 0;

  /// The bytes of one token, valid as long as the tokenizer is. Throws RangeError for an id outside the vocabulary.
  virtual std::string_view token_bytes(TokenId token) const = 0;

  /// What rebuild_tokenizer() needs besides the name: the vocabulary's code points, sorted; for bytes nothing.
  virtual std::vector<std::uint32_t> code_points() const = 0;

  /// The text of `tokens`. Throws RangeError, which names index, id and vocabulary size.
  std::string decode(std::span<const TokenId> tokens) const;

  /// The bytes that decode(tokens) would have, without making them; for bits per byte. Throws as decode does.
  Index size_bytes(std::span<const TokenId> tokens) const;

  /// A hash of kind and vocabulary: equal if and only if (but for chance) the same ids mean the same text.
  std::uint64_t fingerprint() const;
};

/// One token a byte, 256 in all: any file can be encoded, and there is no unknown text.
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

/// One token a Unicode code point, numbered in the order of the code points. A byte order mark at the beginning of a
/// file is kept, as U+FEFF, and "\r\n" is two characters: what was read can be written again, byte for byte.
///
/// encode throws DataError for a character outside the vocabulary (naming it, its place counted in characters from 0,
/// and its byte offset) and for invalid UTF-8 (naming the byte offset).
class CharTokenizer final : public Tokenizer {
 public:
  /// The vocabulary of `text`: the sorted set of its code points. The same text gives the same vocabulary.
  /// Throws DataError if there is no text, or it is not valid UTF-8.
  static CharTokenizer from_text(std::string_view text);

  /// A vocabulary that was stored. It is not trusted: throws DataError if it is empty, not strictly ascending
  /// (unsorted, or a code point twice), or holds what is no code point.
  explicit CharTokenizer(std::vector<std::uint32_t> code_points);

  std::string_view name() const override { return "char"; }
  Index vocab_size() const override { return static_cast<Index>(code_points_.size()); }
  std::vector<TokenId> encode(std::string_view text) const override;
  std::string_view token_bytes(TokenId token) const override;
  std::vector<std::uint32_t> code_points() const override { return code_points_; }

 private:
  /// The id of a code point, or -1.
  TokenId find(std::uint32_t code_point) const;

  std::vector<std::uint32_t> code_points_;
  std::vector<std::string> bytes_;    ///< (V), each token in UTF-8.
  std::array<TokenId, 128> ascii_{};  ///< find() for the characters that most text is made of.
};

std::unique_ptr<Tokenizer> make_byte_tokenizer();

/// As CharTokenizer::from_text.
std::unique_ptr<Tokenizer> make_char_tokenizer(std::string_view text);

/// The tokenizer that had this name and these code points. Throws DataError for an unknown name, for code points that
/// CharTokenizer refuses, and for a byte tokenizer that comes with any.
std::unique_ptr<Tokenizer> rebuild_tokenizer(std::string_view name, std::vector<std::uint32_t> code_points);

}  // namespace handgrad
