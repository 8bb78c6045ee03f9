#include "handgrad/text/encoding_check.h"

#include <gtest/gtest.h>

#include <string>

#include "handgrad/core/errors.h"
#include "support/message.h"

namespace handgrad {
namespace {

using namespace std::string_literals;
using test::message_of;

std::string refusal(const std::string& text) {
  return message_of<DataError>([&] { text::check_encoding(text, "a.txt", "a.txt"); });
}

TEST(EncodingCheck, names_offset_and_encoding) {
  EXPECT_NO_THROW(text::check_encoding("caf\xC3\xA9, a NUL\0 here"s, "a.txt"));
  EXPECT_EQ(
      refusal("It\x92s late"),
      "a.txt: invalid UTF-8 at byte offset 2: byte 0x92 cannot begin a character; perhaps it is WINDOWS-1252 (single "
      "bytes from 80 to FE): iconv -f WINDOWS-1252 -t UTF-8 a.txt > NEW");
  EXPECT_EQ(
      refusal("\xFF\xFEh\0i\0"s),
      "a.txt: invalid UTF-8 at byte offset 0: byte 0xFF cannot begin a character; it looks like UTF-16 (it begins "
      "with FF FE): iconv -f UTF-16 -t UTF-8 a.txt > NEW");
}

// Every byte of this text is valid UTF-8.
TEST(EncodingCheck, refuses_letters_between_nuls) {
  EXPECT_EQ(refusal("l\0i\0n\0e\0 \0o\0n\0e\0\n\0"s),
            "a.txt: not UTF-8 text: byte offset 1 is NUL; it looks like UTF-16LE (9 of its 18 bytes are NUL): iconv -f "
            "UTF-16LE -t UTF-8 a.txt > NEW");
}

TEST(EncodingCheck, a_text_that_ends_too_early_says_nothing_of_its_encoding) {
  EXPECT_EQ(refusal("caf\xC3"),
            "a.txt: invalid UTF-8 at byte offset 3: the text ends inside the character that begins with 0xC3");
}

}  // namespace
}  // namespace handgrad
