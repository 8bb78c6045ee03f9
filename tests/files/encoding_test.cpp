#include "handgrad/files/encoding.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace handgrad::files {
namespace {

using namespace std::string_literals;

const std::u32string letter = U"\u201CIt\u2019s late,\u201D said Tom \u2014 and it was. \u201CCome in.\u201D\n";
const std::u32string russian =
    U"\u041F\u0440\u0438\u0432\u0435\u0442, \u044F \u0438\u0434\u0443 \u0434\u043E\u043C\u043E\u0439.\n";

std::string wide(const std::u32string& text, int bytes, bool little) {
  std::string result;
  for (int i = 0; i < 20; ++i) {
    for (const char32_t c : text) {
      for (int b = 0; b < bytes; ++b) result += static_cast<char>(c >> 8 * (little ? b : bytes - 1 - b));
    }
  }
  return result;
}

std::string repeated(const std::string& text) {
  std::string result;
  for (int i = 0; i < 20; ++i) result += text;
  return result;
}

std::string guess(const std::string& bytes) { return guess_encoding(bytes).name; }

TEST(Encoding, byte_order_marks_are_known) {
  EXPECT_EQ(guess("\xFF\xFE" + wide(letter, 2, true)), "UTF-16");
  EXPECT_EQ(guess("\xFE\xFF" + wide(letter, 2, false)), "UTF-16");
  EXPECT_EQ(guess("\xFF\xFE\0\0"s + wide(letter, 4, true)), "UTF-32");
  EXPECT_EQ(guess("\0\0\xFE\xFF"s + wide(letter, 4, false)), "UTF-32");
  EXPECT_EQ(guess_encoding("\xFF\xFE"
                           "a\0"s)
                .evidence,
            "it begins with FF FE");
}

// In every script, blanks and punctuation have one NUL each.
TEST(Encoding, places_of_nuls_tell_what_has_no_mark) {
  for (const std::u32string& text : {letter, russian}) {
    EXPECT_EQ(guess(wide(text, 2, true)), "UTF-16LE");
    EXPECT_EQ(guess(wide(text, 2, false)), "UTF-16BE");
    EXPECT_EQ(guess(wide(text, 4, true)), "UTF-32LE");
    EXPECT_EQ(guess(wide(text, 4, false)), "UTF-32BE");
    EXPECT_TRUE(guess_wide_encoding(wide(text, 2, true)).wide);
  }
}

TEST(Encoding, eight_bits_and_pairs_are_guessed) {
  EXPECT_EQ(guess(repeated("\x93It\x92s late,\x94 said Tom \x97 and it was.\n")), "WINDOWS-1252");
  EXPECT_EQ(guess("It\x92s once.\n" + std::string(1000, 'a')), "WINDOWS-1252");
  EXPECT_EQ(guess(repeated("\xCF\xF0\xE8\xE2\xE5\xF2, \xFF \xE8\xE4\xF3 \xE4\xEE\xEC\xEE\xE9.\n")), "WINDOWS-1251");
  EXPECT_EQ(guess(repeated("\xC4\xE3\xBA\xC3\xA3\xAC\xBD\xF1\xCC\xEC\xCC\xEC\xC6\xF8\xBA\xDC\xBA\xC3\n")), "GB18030");
  EXPECT_EQ(guess(repeated("\x82\xB1\x82\xF1\x82\xC9\x82\xBF\x82\xCD\x81\x41\n")), "SHIFT_JIS");
}

TEST(Encoding, nothing_is_said_of_what_is_no_text_or_only_damaged) {
  const std::string utf8 = repeated("caf\xC3\xA9 \xE2\x80\x94 \xF0\x9F\x98\x80\n");
  for (const std::string& bytes : {""s, "plain"s, utf8, utf8 + "\xE9t\xE9", "abc\xFFz"s, "a\0b\xC3"s,
                                   std::string(64, '\0'), "\xFF\xD8\xFF\xE0\0\x10JFIF"s}) {
    EXPECT_EQ(guess(bytes), "") << testing::PrintToString(bytes);
  }
  // 16-bit sound samples have NULs at even and odd offsets.
  std::string sound;
  for (int i = 0; i < 400; ++i) sound += {static_cast<char>(i * 37), static_cast<char>(i % 7 - 3)};
  EXPECT_EQ(guess_wide_encoding(sound).name, "");
}

TEST(Encoding, hints_can_be_pasted) {
  const EncodingGuess g{"UTF-16", "it begins with FF FE", true};
  EXPECT_EQ(conversion_hint(g, "a/b.txt"),
            "; it looks like UTF-16 (it begins with FF FE): iconv -f UTF-16 -t UTF-8 a/b.txt > NEW");
  EXPECT_NE(conversion_hint(g, "tom's text").find(" 'tom'\\''s text' > NEW"), std::string::npos);
  EXPECT_NE(conversion_hint(g, "").find(" -t UTF-8 > NEW"), std::string::npos);
  EXPECT_EQ(conversion_hint({}, "a"), "");
}

}  // namespace
}  // namespace handgrad::files
