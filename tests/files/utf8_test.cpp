#include "handgrad/files/utf8.h"

#include <gtest/gtest.h>

#include <string>

#include "handgrad/core/errors.h"

namespace handgrad::files {
namespace {

std::string message_of(const std::string& text, std::size_t offset) {
  try {
    utf8_character(text, offset);
  } catch (const DataError& error) {
    return error.what();
  }
  return "no error";
}

TEST(Utf8, every_code_point_round_trips) {
  for (std::uint32_t c = 0; c <= 0x10FFFF; ++c) {
    if (!is_code_point(c)) continue;
    const std::string bytes = utf8_bytes(c);
    const Utf8Character back = utf8_character(bytes, 0);
    ASSERT_EQ(back.code_point, c);
    ASSERT_EQ(back.size_bytes, bytes.size());
  }
}

TEST(Utf8, what_is_no_code_point_has_no_bytes) {
  for (const std::uint32_t c : {0xD800u, 0xDFFFu, 0x110000u, 0xFFFFFFFFu}) {
    EXPECT_FALSE(is_code_point(c));
    EXPECT_THROW(utf8_bytes(c), RangeError);
  }
}

TEST(Utf8, names_offset_and_fault) {
  const std::string at_two = "invalid UTF-8 at byte offset 2: ";
  EXPECT_EQ(message_of("ab\xFF", 2), at_two + "byte 0xFF cannot begin a character");
  EXPECT_EQ(message_of("ab\x80", 2), at_two + "byte 0x80 cannot begin a character");
  EXPECT_EQ(message_of("ab\xC0\x80", 2), at_two + "0xC0 begins an overlong form");
  EXPECT_EQ(message_of("ab\xC1\xBF", 2), at_two + "0xC1 begins an overlong form");
  EXPECT_EQ(message_of("ab\xE0\x9F\xBF", 2), at_two + "0xE0 begins an overlong form");
  EXPECT_EQ(message_of("ab\xF0\x8F\xBF\xBF", 2), at_two + "0xF0 begins an overlong form");
  EXPECT_EQ(message_of("ab\xED\xA0\x80", 2), at_two + "0xED 0xA0 begins a surrogate");
  EXPECT_EQ(message_of("ab\xED\xBF\xBF", 2), at_two + "0xED 0xBF begins a surrogate");
  EXPECT_EQ(message_of("ab\xF4\x90\x80\x80", 2), at_two + "0xF4 begins a number above U+10FFFF");
  EXPECT_EQ(message_of("ab\xF5\x80\x80\x80", 2), at_two + "0xF5 begins a number above U+10FFFF");
  EXPECT_EQ(message_of("ab\xC3", 2), at_two + "the text ends inside the character that begins with 0xC3");
  EXPECT_EQ(message_of("ab\xF0\x9F\x98", 2), at_two + "the text ends inside the character that begins with 0xF0");
  EXPECT_EQ(message_of("ab\xC3z", 2), at_two + "the character that begins with 0xC3 is incomplete");
  EXPECT_EQ(message_of("ab\xE2\x82z", 2), at_two + "the character that begins with 0xE2 is incomplete");
}

TEST(Utf8, check_names_the_source) {
  EXPECT_NO_THROW(check_utf8("a\xC3\xA9\n", "notes.txt"));
  try {
    check_utf8("a\xC3\xA9\xFF", "notes.txt");
    FAIL();
  } catch (const DataError& error) {
    EXPECT_STREQ(error.what(), "notes.txt: invalid UTF-8 at byte offset 3: byte 0xFF cannot begin a character");
  }
}

TEST(Utf8, describes_characters) {
  EXPECT_EQ(describe_character('x'), "'x' (U+0078)");
  EXPECT_EQ(describe_character(0xE9), "'\xC3\xA9' (U+00E9)");
  EXPECT_EQ(describe_character(0x1F600), "'\xF0\x9F\x98\x80' (U+1F600)");
  for (const std::uint32_t c : {0x0Au, 0x1Bu, 0x7Fu, 0x9Bu, 0xFEFFu, 0x200Du, 0x202Eu, 0xFE0Fu}) {
    EXPECT_EQ(describe_character(c).find('\''), std::string::npos) << c;
  }
}

// Every division of a text into two pieces, and single bytes.
TEST(Utf8Stream, gives_whole_characters_only) {
  const std::string text = "a\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80z";
  for (std::size_t cut = 0; cut <= text.size(); ++cut) {
    Utf8Stream stream;
    const std::string first = stream.push(text.substr(0, cut));
    EXPECT_NO_THROW(check_utf8(first, "first")) << cut;
    const std::string second = stream.push(text.substr(cut));
    EXPECT_NO_THROW(check_utf8(second, "second")) << cut;
    EXPECT_EQ(first + second, text);
    EXPECT_EQ(stream.flush(), "");
  }
  Utf8Stream stream;
  std::string all;
  for (const char c : text) {
    const std::string piece = stream.push({&c, 1});
    EXPECT_NO_THROW(check_utf8(piece, "piece"));
    all += piece;
  }
  EXPECT_EQ(all, text);
}

TEST(Utf8Stream, hands_on_what_is_no_character) {
  Utf8Stream stream;
  EXPECT_EQ(stream.push("\xFF"), "\xFF");
  EXPECT_EQ(stream.push("\xE2\x82"), "");
  EXPECT_EQ(stream.push("z"), "\xE2\x82z");
  EXPECT_EQ(stream.push("\xE2\x82"), "");
  EXPECT_EQ(stream.push("\xC3"), "\xE2\x82");
  EXPECT_EQ(stream.push("\xA9"), "\xC3\xA9");
  EXPECT_EQ(stream.push("\xF0\x9F\x98"), "");
  EXPECT_EQ(stream.flush(), "\xF0\x9F\x98");
  EXPECT_EQ(stream.flush(), "");
}

TEST(Utf8, is_utf8_is_strict) {
  for (const char* good : {"", "a", "\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x99\x82", "\xf4\x8f\xbf\xbf"}) {
    EXPECT_TRUE(is_utf8(good)) << good;
    EXPECT_FALSE(is_cut_short(good)) << good;
  }
  for (const char* bad : {"\x80", "\xc0\xaf", "\xe0\x80\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xff", "\xff\xc3"}) {
    EXPECT_FALSE(is_utf8(bad)) << "first byte " << +static_cast<unsigned char>(bad[0]);
    EXPECT_FALSE(is_cut_short(bad)) << "first byte " << +static_cast<unsigned char>(bad[0]);
  }
  for (const char* cut : {"\xc3", "a\xe2\x82", "\xf0\x9f\x99"}) {
    EXPECT_FALSE(is_utf8(cut));
    EXPECT_TRUE(is_cut_short(cut));
  }
}

}  // namespace
}  // namespace handgrad::files
