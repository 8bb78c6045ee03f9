#include "handgrad/text/unknown_characters.h"

#include <gtest/gtest.h>

#include <string>

#include "handgrad/core/errors.h"
#include "support/message.h"

namespace handgrad {
namespace {

using test::message_of;

Corpus corpus_of(const std::vector<std::pair<std::string, std::string>>& files) {
  Corpus corpus;
  for (const auto& [name, text] : files) {
    corpus.text += text;
    corpus.files.push_back({name, static_cast<Index>(text.size())});
  }
  return corpus;
}

const std::string way_out = "; remove them, or train a model with tokenizer.kind=byte, which has no unknown characters";

TEST(UnknownCharacters, are_all_said_at_once_with_their_places) {
  const CharTokenizer tokenizer = CharTokenizer::from_text("abcdefghijklmnopqrstuvwxyz .\n");
  const Corpus corpus = corpus_of({{"a.txt", "clean.\n"},
                                   {"b.txt", "clean\ncaf\xC3\xA9 \xC3\xA9 \xC3\xA9\t\xC3\x9F"},
                                   {"c.txt", "\xE2\x80\x94 and \xE2\x80\x94"}});
  EXPECT_EQ(
      message_of<DataError>([&] { encode_corpus(tokenizer, corpus, "data.files"); }),
      "data.files: 4 characters are not in the vocabulary of 29 characters: '\xC3\xA9' (U+00E9) 3 times (first in "
      "b.txt, line 2, character 4); '\xE2\x80\x94' (U+2014) 2 times (first in c.txt, line 1, character 1); "
      "U+0009 once (b.txt, line 2, character 9); '\xC3\x9F' (U+00DF) once (b.txt, line 2, character 10)" +
          way_out);
  EXPECT_EQ(encode_corpus(tokenizer, corpus_of({{"a", "ab"}, {"b", "a"}}), "x"), (std::vector<TokenId>{3, 4, 3}));
  EXPECT_EQ(message_of<DataError>([&] { encode_text(tokenizer, "a\nBa", "prompt"); }),
            "prompt: a character is not in the vocabulary of 29 characters: 'B' (U+0042) once (line 2, character 1)" +
                way_out);
  EXPECT_EQ(message_of<DataError>([&] { encode_text(tokenizer, "a\xFF", "prompt"); }),
            "prompt: invalid UTF-8 at byte offset 1: byte 0xFF cannot begin a character");
}

TEST(UnknownCharacters, a_long_list_is_cut) {
  std::string text;
  for (int c = 'A'; c <= 'Z'; ++c) text += static_cast<char>(c);
  const std::string message =
      message_of<DataError>([&] { encode_text(CharTokenizer::from_text("a"), text, "prompt"); });
  EXPECT_NE(message.find("26 characters are not in the vocabulary of 1 character: "), std::string::npos) << message;
  EXPECT_NE(message.find("; and 18 more; remove"), std::string::npos) << message;
}

TEST(UnknownCharacters, line_ends_and_marks_say_how_to_be_rid_of_them) {
  const CharTokenizer tokenizer = CharTokenizer::from_text("ab\n");
  const std::string message = message_of<DataError>([&] {
    encode_text(tokenizer,
                "\xEF\xBB\xBF"
                "a\r\nb\r\n",
                "a.txt");
  });
  EXPECT_NE(message.find("U+000D 2 times"), std::string::npos) << message;
  EXPECT_NE(message.find("; U+000D is part of Windows line ends (CRLF): sed 's/\\r$//' FILE > NEW converts them"),
            std::string::npos)
      << message;
  EXPECT_NE(message.find("; U+FEFF is a byte order mark: "), std::string::npos) << message;
  EXPECT_EQ(message.find("remove them"), std::string::npos) << message;
}

TEST(UnknownCharacters, a_combining_accent_names_the_composed_letter) {
  const CharTokenizer tokenizer = CharTokenizer::from_text("caf\xC3\xA9");
  EXPECT_EQ(
      message_of<DataError>([&] { encode_text(CharTokenizer::from_text("cafe\xC3\xA9"), "cafe\xCC\x81", "prompt"); }),
      "prompt: a character is not in the vocabulary of 5 characters: U+0301 once (line 1, character 5); U+0301 "
      "combines with the letter before it, and the vocabulary has the composed '\xC3\xA9' (U+00E9): normalise "
      "the text to NFC");
  EXPECT_EQ(text::composed_letter('e', 0x301), 0xE9u);
  EXPECT_EQ(text::composed_letter('Z', 0x30C), 0x17Du);
  EXPECT_EQ(text::composed_letter('u', 0x308), 0xFCu);
  EXPECT_EQ(text::composed_letter('q', 0x301), 0u);
  EXPECT_EQ(text::composed_letter('e', 'x'), 0u);
}

}  // namespace
}  // namespace handgrad
