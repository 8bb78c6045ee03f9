#include "support/terminal.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <regex>

#include "handgrad/files/utf8.h"
#include "support/command_line.h"

// Output on a terminal: the bar of a run, and text that must not control the terminal.

namespace handgrad {
namespace {

using test::CommandLine;
using test::OnTerminal;
using test::run_on_terminal;
using test::Shown;

class Terminal : public testing::Test {
 protected:
  void SetUp() override {
    line.prepare();
    how.folder = line.path();
    if (run_on_terminal({"--version"}, how).exit_code != 0) GTEST_SKIP() << "no pseudo-terminal can be made here";
  }
  Shown train(std::vector<std::string> more = {}) {
    more.insert(more.begin(), {"train", "tiny.toml", "--overwrite", "--set", "train.steps=600", "--set",
                               "eval.every=300", "--set", "checkpoint.every=600"});
    const Shown shown = run_on_terminal(more, how);
    EXPECT_EQ(shown.exit_code, 0) << shown.text;
    return shown;
  }
  // The text of each drawing of the bar.
  static std::vector<std::string> bars(const std::string& text) {
    std::vector<std::string> found;
    for (std::size_t at = 0; (at = text.find("\r\033[J", at)) != std::string::npos; at += 4) {
      const std::size_t begin = text.find_last_of("\nJ", at - 1) + 1;
      found.push_back(text.substr(begin, at - begin));
    }
    return found;
  }
  CommandLine line;
  OnTerminal how;
};

// Parts are dropped as a whole, the time left last.
TEST_F(Terminal, the_bar_fits_and_keeps_the_time_left) {
  const std::regex whole(
      R"re((\[=* *\] )?(\d+/600)?( *loss \d+\.\d{4})?( *lr \d\.\d\de[-+]\d\d)?( *\d+ tokens/s)?( *(\d+:\d\d left|evaluating))?)re");
  for (const int columns : {0, 200, 80, 40, 20, 12}) {
    how.columns = columns;
    SCOPED_TRACE(columns);
    bool left = false, evaluating = false;
    for (const std::string& bar : bars(train().text)) {
      EXPECT_TRUE(std::regex_match(bar, whole)) << bar;
      EXPECT_LT(bar.size(), columns == 0 ? 80u : static_cast<std::size_t>(columns)) << bar;
      EXPECT_EQ(bar.find(" 0 tokens/s"), std::string::npos) << bar;
      left = left || bar.find(" left") != std::string::npos;
      evaluating = evaluating || bar.find("evaluating") != std::string::npos;
      if (bar.find("1/600") != 0 && bar.find("] 1/600") == std::string::npos) {
        EXPECT_TRUE(bar.ends_with(" left") || bar.ends_with("evaluating")) << bar;
      }
    }
    EXPECT_TRUE(evaluating);
  }
}

// A bar drawn in a wide window occupies several lines of a narrow one; all of them are cleared.
TEST_F(Terminal, a_window_that_shrinks_is_drawn_whole) {
  how.columns = 120;
  how.later_columns = 30;
  const std::string text =
      train({"--set", "train.steps=20000", "--set", "eval.every=20000", "--set", "checkpoint.every=20000"}).text;
  std::smatch up;
  ASSERT_TRUE(std::regex_search(text, up, std::regex(R"re(\r\x1b\[[1-3]A\x1b\[J)re"))) << text;
  const std::vector<std::string> after = bars(up.suffix());
  ASSERT_FALSE(after.empty());
  for (const std::string& bar : after) EXPECT_LT(bar.size(), 30u) << bar;
}

TEST_F(Terminal, one_that_cannot_draw_gets_plain_lines) {
  for (const std::vector<std::string>& environment :
       std::vector<std::vector<std::string>>{{},
                                             {"TERM=dumb"},
                                             {"TERM="},
                                             {"TERM=emacs"},
                                             {"TERM=xterm", "NO_COLOR=1"},
                                             {"TERM=xterm", "INSIDE_EMACS=29.1,comint"}}) {
    how.environment = environment;
    SCOPED_TRACE(testing::PrintToString(environment));
    const std::string text = train().text;
    EXPECT_EQ(text.find('\033'), std::string::npos);
    EXPECT_NE(text.find("\nstep 600  loss "), std::string::npos);
    for (std::size_t at = 0; (at = text.find('\r', at)) != std::string::npos; ++at) EXPECT_EQ(text[at + 1], '\n');
  }
}

TEST_F(Terminal, generated_text_steers_nothing) {
  std::string coloured;
  for (int i = 0; i < 40; ++i)
    coloured +=
        "\033[31m\033]0;x\a\x0e\xC2\x9B"
        "5mtom\n";
  line.write("text.txt", coloured);
  ASSERT_EQ(line.run({"train", "tiny.toml", "--out", "run"}).exit_code, 0);
  const std::vector<std::string> generate = {"generate", "run", "--prompt",      "\033[31m",
                                             "-n",       "200", "--temperature", "9"};
  const std::string exact = line.run(generate).out;
  ASSERT_NE(exact.find('\a'), std::string::npos);
  const std::string text = run_on_terminal(generate, how).text;
  EXPECT_EQ(text.find("\\x1b[31m"), 0u) << text;
  for (const char* control : {"\033", "\a", "\x0e", "\xC2\x9B"}) EXPECT_EQ(text.find(control), std::string::npos);
  for (const char* shown : {"\\x07", "\\x0e", "\\u009b"}) EXPECT_NE(text.find(shown), std::string::npos) << shown;
  std::vector<std::string> raw = generate;
  raw.push_back("--raw");
  std::string bytes = run_on_terminal(raw, how).text;
  bytes.erase(std::remove(bytes.begin(), bytes.end(), '\r'), bytes.end());  // added by the terminal
  EXPECT_EQ(bytes, exact);
}

TEST_F(Terminal, a_sample_of_a_run_is_one_line_of_valid_text) {
  std::string bytes;
  for (int i = 0; i < 60; ++i) bytes += "\x9B\xFFto\xC3\xA9m\n\r\t\xE2\x80\xAE";
  line.write("text.txt", bytes);
  const std::string text =
      train({"--set", "tokenizer.kind=byte", "--set", "sample.every=600", "--set", "sample.temperature=9"}).text;
  const std::size_t at = text.find("step 600  sample: ");
  ASSERT_NE(at, std::string::npos) << text;
  const std::string sample = text.substr(at, text.find("\r\n", at) - at);
  EXPECT_TRUE(std::regex_search(sample, std::regex(R"re(\\x[89a-f][0-9a-f])re"))) << sample;
  EXPECT_NO_THROW(files::check_utf8(sample, "sample"));
  for (const unsigned char c : sample) EXPECT_GE(c, 0x20) << sample;
}

TEST_F(Terminal, reading_from_it_says_so) {
  ASSERT_EQ(line.run({"train", "tiny.toml", "--out", "run"}).exit_code, 0);
  how.typed = "the \n\x04";
  const Shown shown = run_on_terminal({"generate", "run", "--prompt-file", "-", "-n", "3"}, how);
  EXPECT_EQ(shown.exit_code, 0) << shown.text;
  EXPECT_NE(shown.text.find("note: reading the prompt from the terminal; Ctrl-D on a new line ends it"),
            std::string::npos);
  const Shown evaluated = run_on_terminal({"eval", "run", "--data", "-"}, how);
  EXPECT_NE(evaluated.text.find("note: reading the text from the terminal"), std::string::npos);
}

}  // namespace
}  // namespace handgrad
