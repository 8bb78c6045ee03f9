#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>

#include "support/command_line.h"
#include "support/training.h"

// Texts as people have them: other encodings, folders with other files, characters outside a model's vocabulary.

namespace handgrad {
namespace {

namespace files = std::filesystem;
using namespace std::string_literals;
using test::CommandLine;
using test::Launch;
using test::Outcome;

class Texts : public testing::Test {
 protected:
  void SetUp() override {
    line.prepare();
    ASSERT_EQ(line.run({"train", "tiny.toml", "--out", "run"}).exit_code, 0);
  }
  Outcome train_on(const std::string& paths, const std::string& more = "train.seed=1") const {
    return line.run({"train", "tiny.toml", "--out", "other", "--set", "data.files=[" + paths + "]", "--set", more});
  }
  void refuses(const Outcome& outcome, const std::string& message) const {
    EXPECT_EQ(outcome.exit_code, 4);
    EXPECT_EQ(outcome.out, "");
    EXPECT_NE(outcome.err.find(message), std::string::npos) << outcome.err;
    EXPECT_FALSE(line.exists("other"));
  }
  CommandLine line;
};

std::string wide(const std::string& text) {
  std::string result;
  for (const char c : text) result += {c, '\0'};
  return result;
}

TEST_F(Texts, in_another_encoding_are_named_wherever_they_are_given) {
  const std::string utf16 = "it looks like UTF-16LE (", latin = "perhaps it is WINDOWS-1252 (";
  line.write("folder/good.txt", test::sample_text(400));
  line.write("folder/wide.txt", wide(test::sample_text(400)));
  line.write("latin.txt", "It\x92s late.\n" + test::sample_text(400));
  refuses(train_on("\"folder\""), line / "folder/wide.txt" + ": not UTF-8 text: byte offset 1 is NUL; " + utf16);
  refuses(train_on("\"latin.txt\""), line / "latin.txt" + ": invalid UTF-8 at byte offset 2: ");
  refuses(train_on("\"text.txt\"", "data.validation_files=[\"latin.txt\"]"), latin);
  refuses(line.run({"eval", "run", "--data", "latin.txt"}), "latin.txt: invalid UTF-8 at byte offset 2: ");
  refuses(line.run({"eval", "run", "--data", "latin.txt"}), latin);
  refuses(line.run({"generate", "run", "--prompt-file", "latin.txt"}), latin);
  refuses(line.run({"generate", "run", "--prompt-file", "folder/wide.txt"}), utf16);
  // Byte tokens accept any bytes; a note reports the probable encoding.
  const Outcome bytes = train_on("\"folder/wide.txt\"", "tokenizer.kind=\"byte\"");
  EXPECT_EQ(bytes.exit_code, 0) << bytes.err;
  EXPECT_NE(bytes.out.find("note: " + line / "folder/wide.txt" + ": " + utf16), std::string::npos) << bytes.out;
}

TEST_F(Texts, of_a_folder_are_counted_at_the_start) {
  line.write("texts/a.txt", test::sample_text(200));
  line.write("texts/b.md", "\xEF\xBB\xBF" + test::sample_text(200) + "\r\n");
  line.write("texts/.git/description.txt", "git");
  line.write("texts/b.md~", "backup");
  files::create_symlink("a.txt", line / "texts/link.txt");
  files::create_directory_symlink(".", line / "texts/sub");
  ASSERT_EQ(::mkfifo((line / "texts/x.txt").c_str(), 0600), 0);
  const Outcome folder = train_on("\"texts\"");
  EXPECT_EQ(folder.exit_code, 0) << folder.err;
  for (const char* text :
       {"\ndata.files: 2 files, 405 bytes; passed over: 1 hidden name, 1 file with another ending, 1 "
        "link to a file that is read, 1 link to a folder, 1 pipe, device or broken link\n",
        "\nnote: 1 file begins with a byte order mark", "\nnote: 1 file has CRLF line ends"}) {
    EXPECT_NE(folder.out.find(text), std::string::npos) << folder.out;
  }
  const auto loss = [](const Outcome& outcome) { return outcome.out.substr(outcome.out.find("\nstep 1 ")); };
  files::remove_all(line / "other");
  EXPECT_EQ(loss(train_on("\"texts/a.txt\", \"texts/b.md\"")).substr(0, 40), loss(folder).substr(0, 40));
}

TEST_F(Texts, that_are_trained_on_and_validated_on_are_pointed_out) {
  files::create_symlink("text.txt", line / "link.txt");
  const Outcome outcome = train_on("\"text.txt\"", "data.validation_files=[\"link.txt\"]");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_NE(
      outcome.out.find("\nnote: " + line / "link.txt" +
                       " is training text and validation text: the validation loss does not measure generalisation\n"),
      std::string::npos)
      << outcome.out;
}

TEST_F(Texts, that_cannot_be_found_say_what_may_be_meant) {
  refuses(train_on("\"none.txt\""), "none.txt; --set data.files='[\"FILE\"]' names another\n");
  refuses(train_on("\"text.txt\"", "data.validation_files=[\"none.txt\"]"), "; --set data.validation_files=");
  refuses(train_on("\"~/text.txt\""), "/~/text.txt; ~, *, ? and $ are part of the name");
  refuses(train_on("'C:\\data\\my.txt'"), "; a backslash is part of the name");
}

TEST_F(Texts, with_unknown_characters_are_refused_once) {
  line.write("b.txt", "the hen\nsaw \xC3\xA9\xE2\x80\x94\xC3\xA9");
  const std::string message =
      "2 characters are not in the vocabulary of 16 characters: '\xC3\xA9' (U+00E9) 2 times (first "
      "in b.txt, line 2, character 5); '\xE2\x80\x94' (U+2014) once (b.txt, line 2, character "
      "6); remove them, or train a model with tokenizer.kind=byte";
  refuses(line.run({"eval", "run", "--data", "text.txt", "--data", "b.txt"}), "--data: " + message);
  refuses(line.run({"generate", "run", "--prompt-file", "b.txt"}),
          "prompt: 2 characters are not in the vocabulary of 16 characters: ");
  const Outcome tuned = line.run(
      {"train", "tiny.toml", "--out", "other", "--init", "run", "--set", "data.files=[\"text.txt\", \"b.txt\"]"});
  refuses(tuned, "data.files: 2 characters are not in the vocabulary of 16 characters: ");
  refuses(tuned, line / "b.txt" + ", line 2, character 5");
}

TEST_F(Texts, with_other_line_ends_say_how_to_convert_them) {
  std::string crlf;
  for (const char c : line.read("text.txt")) crlf += c == '.' ? ".\r\n"s : std::string(1, c);
  line.write("crlf.txt", crlf);
  std::string lf;
  for (const char c : line.read("text.txt")) lf += c == '.' ? ".\n"s : std::string(1, c);
  line.write("lf.txt", lf);
  ASSERT_EQ(train_on("\"lf.txt\"").exit_code, 0);
  const Outcome outcome = line.run({"eval", "other", "--data", "crlf.txt"});
  EXPECT_EQ(outcome.exit_code, 4);
  EXPECT_NE(outcome.err.find("; U+000D is part of Windows line ends (CRLF): sed 's/\\r$//' FILE > NEW converts them\n"),
            std::string::npos)
      << outcome.err;
}

TEST_F(Texts, are_evaluated_from_a_pipe) {
  const auto losses = [](const Outcome& outcome) {
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    return outcome.out;
  };
  const std::string expected = losses(line.run({"eval", "run", "--data", "text.txt"}));
  Launch piped;
  piped.input = line.read("text.txt");
  EXPECT_EQ(losses(line.run({"eval", "run", "--data", "-"}, piped)), expected);
  const std::string command =
      "cd " + line.path() + " && cat text.txt | " HANDGRAD_BINARY " eval run --data /dev/stdin > out";
  EXPECT_EQ(std::system(command.c_str()), 0);
  EXPECT_EQ(line.read("out"), expected);
  refuses(line.run({"eval", "run", "--data", "-"}), "empty file: standard input");
  piped.input = "the \xFF";
  refuses(line.run({"eval", "run", "--data", "-"}, piped), "standard input: invalid UTF-8 at byte offset 4: ");
}

TEST_F(Texts, of_configs_may_come_from_windows) {
  const std::string config = line.read("tiny.toml");
  line.write("marked.toml", "\xEF\xBB\xBF" + config);
  EXPECT_EQ(line.run({"train", "marked.toml"}).exit_code, 0);
  line.write("wide.toml", "\xFF\xFE" + wide(config));
  EXPECT_EQ(line.run({"train", "wide.toml"}).err,
            "error: wide.toml: a config is UTF-8 text; it looks like UTF-16 (it begins with FF FE): iconv -f UTF-16 -t "
            "UTF-8 wide.toml > NEW\n");
  line.write("paths.toml", "[data]\nfiles = [\"C:\\data\\my.txt\"]\n");
  EXPECT_EQ(line.run({"train", "paths.toml"}).err,
            "error: paths.toml:2: malformed TOML: unknown escape sequence '\\d'; between double quotes a backslash "
            "begins an escape: write the path with slashes or between single quotes\n");
}

}  // namespace
}  // namespace handgrad
