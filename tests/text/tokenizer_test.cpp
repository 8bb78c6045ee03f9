#include "handgrad/text/tokenizer.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "handgrad/core/errors.h"
#include "support/message.h"

namespace handgrad {
namespace {

using namespace std::string_literals;

// A byte order mark, CRLF and a character of two bytes: decoding restores every byte.
const std::string marked =
    "\xEF\xBB\xBF"
    "a\r\n\xC3\xA9"
    "b";

const std::vector<std::string> awkward = {"",
                                          " ",
                                          "  a",
                                          "\n\n",
                                          "a\n\nb ",
                                          "\t\ta\t",
                                          "a\r\nb",
                                          "a\0b"s,
                                          "no final line end",
                                          marked,
                                          "\xF0\x9F\x91\xA9\xE2\x80\x8D\xF0\x9F\x9A\x80 rocket",
                                          "a <|endoftext|> b"};

TEST(ByteTokenizer, every_byte_is_its_own_token) {
  const ByteTokenizer tokenizer;
  EXPECT_EQ(tokenizer.name(), "byte");
  EXPECT_EQ(tokenizer.vocab_size(), 256);
  EXPECT_TRUE(tokenizer.code_points().empty());
  std::string all;
  for (int b = 0; b < 256; ++b) all += static_cast<char>(b);
  const std::vector<TokenId> tokens = tokenizer.encode(all);
  for (int b = 0; b < 256; ++b) EXPECT_EQ(tokens[static_cast<std::size_t>(b)], b);
  EXPECT_EQ(tokenizer.decode(tokens), all);
}

TEST(ByteTokenizer, round_trips_exactly) {
  const ByteTokenizer tokenizer;
  EXPECT_EQ(tokenizer.encode(marked).size(), 9u);
  EXPECT_EQ(tokenizer.encode("<|endoftext|>").size(), 13u);
  for (const std::string& text : awkward) {
    const auto tokens = tokenizer.encode(text);
    EXPECT_EQ(tokenizer.decode(tokens), text);
    EXPECT_EQ(tokenizer.size_bytes(tokens), static_cast<Index>(text.size()));
  }
  const std::string invalid =
      "a\xFF"
      "b\xC3";
  EXPECT_EQ(tokenizer.decode(tokenizer.encode(invalid)), invalid);
}

TEST(CharTokenizer, vocabulary_is_the_sorted_set_of_code_points) {
  const CharTokenizer tokenizer = CharTokenizer::from_text(
      "b\xC3\xA9"
      "a\nab");
  EXPECT_EQ(tokenizer.name(), "char");
  EXPECT_EQ(tokenizer.code_points(), (std::vector<std::uint32_t>{'\n', 'a', 'b', 0xE9}));
  EXPECT_EQ(tokenizer.vocab_size(), 4);
  EXPECT_EQ(tokenizer.encode("ab\xC3\xA9\n"), (std::vector<TokenId>{1, 2, 3, 0}));
  EXPECT_EQ(tokenizer.token_bytes(3), "\xC3\xA9");
}

TEST(CharTokenizer, round_trips_exactly) {
  std::string all;
  for (const std::string& text : awkward) all += text;
  const CharTokenizer tokenizer = CharTokenizer::from_text(all);
  for (const std::string& text : awkward) {
    const auto tokens = tokenizer.encode(text);
    EXPECT_EQ(tokenizer.decode(tokens), text);
    EXPECT_EQ(tokenizer.size_bytes(tokens), static_cast<Index>(text.size()));
  }
}

// The byte order mark is a character, so there are 6 code points, not 5. The carriage return is kept.
TEST(CharTokenizer, keeps_byte_order_mark_and_carriage_return) {
  const CharTokenizer tokenizer = CharTokenizer::from_text(marked);
  EXPECT_EQ(tokenizer.code_points(), (std::vector<std::uint32_t>{'\n', '\r', 'a', 'b', 0xE9, 0xFEFF}));
  EXPECT_EQ(tokenizer.encode(marked).size(), 6u);
}

TEST(CharTokenizer, characters_across_block_boundaries) {
  for (const std::size_t n : {4095u, 65535u, 1048575u}) {
    const std::string text = std::string(n, 'a') + "\xC3\xA9";
    const CharTokenizer tokenizer = CharTokenizer::from_text(text);
    EXPECT_EQ(tokenizer.code_points(), (std::vector<std::uint32_t>{'a', 0xE9}));
    const auto tokens = tokenizer.encode(text);
    EXPECT_EQ(tokens.size(), n + 1);
    EXPECT_EQ(tokens.back(), 1);
    EXPECT_EQ(tokenizer.decode(tokens), text);
  }
}

TEST(CharTokenizer, names_an_unknown_character_and_its_place) {
  const CharTokenizer tokenizer = CharTokenizer::from_text("ab\xC3\xA9");
  EXPECT_EQ(test::message_of<DataError>([&] {
              tokenizer.encode(
                  "a\xC3\xA9"
                  "bZ");
            }),
            "unknown character 'Z' (U+005A) at character 3 (byte offset 4): it is not one of the 3 characters of the "
            "vocabulary");
  EXPECT_EQ(test::message_of<DataError>([&] { tokenizer.encode("\xE2\x82\xAC"); }),
            "unknown character '\xE2\x82\xAC' (U+20AC) at character 0 (byte offset 0): it is not one of the 3 "
            "characters of the "
            "vocabulary");
  EXPECT_EQ(
      test::message_of<DataError>([&] { tokenizer.encode("a\n"); }),
      "unknown character U+000A at character 1 (byte offset 1): it is not one of the 3 characters of the vocabulary");
}

TEST(CharTokenizer, refuses_invalid_utf8) {
  EXPECT_EQ(test::message_of<DataError>([] {
              CharTokenizer::from_text(
                  "abc\xFF"
                  "def");
            }),
            "invalid UTF-8 at byte offset 3: byte 0xFF cannot begin a character");
  const CharTokenizer tokenizer = CharTokenizer::from_text("abc");
  EXPECT_EQ(test::message_of<DataError>([&] { tokenizer.encode("ab\xC3"); }),
            "invalid UTF-8 at byte offset 2: the text ends inside the character that begins with 0xC3");
  EXPECT_THROW(CharTokenizer::from_text(""), DataError);
}

TEST(CharTokenizer, refuses_a_foreign_vocabulary_that_is_none) {
  using V = std::vector<std::uint32_t>;
  EXPECT_EQ(test::message_of<DataError>([] { CharTokenizer(V{}); }),
            "char vocabulary: must have at least one code point, got none");
  EXPECT_EQ(test::message_of<DataError>([] {
              CharTokenizer(V{'a', 'a'});
            }),
            "char vocabulary: entry 1 is U+0061 after U+0061; code points must ascend");
  EXPECT_EQ(test::message_of<DataError>([] {
              CharTokenizer(V{'b', 'a'});
            }),
            "char vocabulary: entry 1 is U+0061 after U+0062; code points must ascend");
  EXPECT_EQ(test::message_of<DataError>([] {
              CharTokenizer(V{'a', 0xD800});
            }),
            "char vocabulary: entry 1 is 0xD800, which is not a code point");
  EXPECT_EQ(test::message_of<DataError>([] { CharTokenizer(V{0x110000}); }),
            "char vocabulary: entry 0 is 0x110000, which is not a code point");
}

TEST(Tokenizer, refuses_tokens_outside_the_vocabulary) {
  const CharTokenizer letters = CharTokenizer::from_text("abc");
  const ByteTokenizer bytes;
  EXPECT_EQ(test::message_of<RangeError>([&] {
              letters.decode(std::vector<TokenId>{0, 2, 3});
            }),
            "decode: token 3 at index 2 is outside the vocabulary of 3 tokens");
  EXPECT_EQ(test::message_of<RangeError>([&] { letters.size_bytes(std::vector<TokenId>{-1}); }),
            "decode: token -1 at index 0 is outside the vocabulary of 3 tokens");
  EXPECT_EQ(test::message_of<RangeError>([&] { letters.token_bytes(3); }),
            "token 3 is outside the vocabulary of 3 tokens");
  EXPECT_THROW(bytes.decode(std::vector<TokenId>{256}), RangeError);
  EXPECT_THROW(bytes.token_bytes(-1), RangeError);
}

TEST(Tokenizer, is_rebuilt_from_name_and_code_points) {
  const auto letters = make_char_tokenizer(marked);
  const auto again = rebuild_tokenizer(letters->name(), letters->code_points());
  EXPECT_EQ(again->fingerprint(), letters->fingerprint());
  EXPECT_EQ(again->encode(marked), letters->encode(marked));
  const auto bytes = make_byte_tokenizer();
  EXPECT_EQ(rebuild_tokenizer("byte", bytes->code_points())->fingerprint(), bytes->fingerprint());
  EXPECT_EQ(test::message_of<DataError>([] { rebuild_tokenizer("bpe", {}); }),
            "unknown tokenizer 'bpe': expected byte or char");
  EXPECT_THROW(rebuild_tokenizer("byte", {97}), DataError);
  EXPECT_THROW(rebuild_tokenizer("char", {}), DataError);
}

TEST(Tokenizer, fingerprint_tells_kinds_and_vocabularies_apart) {
  const auto ab = make_char_tokenizer("ab");
  EXPECT_EQ(ab->fingerprint(), make_char_tokenizer("bbaa")->fingerprint());
  EXPECT_NE(ab->fingerprint(), make_char_tokenizer("ac")->fingerprint());
  EXPECT_NE(ab->fingerprint(), make_char_tokenizer("abc")->fingerprint());
  EXPECT_NE(ab->fingerprint(), make_byte_tokenizer()->fingerprint());
  // FNV-1a of "byte" and a zero byte. Checkpoints store this value, so it must never change.
  std::uint64_t expected = 14695981039346656037u;
  for (const char c : {'b', 'y', 't', 'e', '\0'})
    expected = (expected ^ static_cast<unsigned char>(c)) * 1099511628211u;
  EXPECT_EQ(make_byte_tokenizer()->fingerprint(), expected);
}

}  // namespace
}  // namespace handgrad
