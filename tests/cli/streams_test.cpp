#include <gtest/gtest.h>
#include <sys/stat.h>

#include "support/command_line.h"

// Standard streams that are closed or full, or whose reader ends.

namespace handgrad::test {
namespace {

bool full_device_exists() {
  struct stat info {};
  return ::stat("/dev/full", &info) == 0 && S_ISCHR(info.st_mode);
}

std::string last_checkpoint(const CommandLine& line, const std::string& run) {
  return line.read(run + "/checkpoints/step-00000006.h5");
}

class Streams : public ::testing::Test {
 protected:
  void SetUp() override {
    line_.prepare();
    ASSERT_EQ(line_.run({"train", "tiny.toml", "--out", "expected"}).exit_code, 0);
  }
  void expect_trained(const std::string& run) const {
    EXPECT_TRUE(last_checkpoint(line_, run) == last_checkpoint(line_, "expected"));
    EXPECT_EQ(line_.read(run + "/lock"), "");
    EXPECT_EQ(line_.read(run + "/metrics.jsonl").rfind("{\"step\":1,", 0), 0u);
    EXPECT_EQ(line_.read(run + "/metrics.jsonl").find("saved"), std::string::npos);
  }
  CommandLine line_;
};

TEST_F(Streams, closed_ones_reach_no_file_of_the_run) {
  EXPECT_EQ(line_.shell("$h train tiny.toml --out a >&-"), 0);
  expect_trained("a");
  EXPECT_EQ(line_.shell("$h train tiny.toml --out b <&- >&- 2>&-"), 0);
  expect_trained("b");
  EXPECT_EQ(line_.shell("$h train tiny.toml --out c 2>&- >out"), 0);
  expect_trained("c");
}

TEST_F(Streams, a_reader_that_goes_away_does_not_end_training) {
  // `true` reads nothing, and `head -1` reads one line. Later output has no reader.
  EXPECT_EQ(line_.shell("$h train tiny.toml --out a | true"), 141);
  expect_trained("a");
  EXPECT_EQ(line_.shell("$h train tiny.toml --out b 2>b.err | head -1 > /dev/null"), 141);
  expect_trained("b");
  EXPECT_EQ(line_.read("b.err"), "");
}

TEST_F(Streams, other_commands_end_without_a_word_when_their_reader_has_gone) {
  for (const std::string command : {"generate expected -n 20000", "config explain", "inspect expected", "--help",
                                    "eval expected", "config check tiny.toml"}) {
    const int code = line_.shell("$h " + command + " 2>err | true");
    EXPECT_TRUE(code == 141 || code == 0) << command << ": " << code;  // 0: written before the reader ended
    EXPECT_EQ(line_.read("err"), "") << command;
  }
}

TEST_F(Streams, one_that_cannot_be_written_is_an_error_after_the_work_is_done) {
  if (!full_device_exists()) GTEST_SKIP() << "/dev/full is not a device here";
  EXPECT_EQ(line_.shell("$h train tiny.toml --out a > /dev/full 2> err"), 4);
  expect_trained("a");
  EXPECT_EQ(line_.read("err"), "error: cannot write to standard output: no space left on device\n");
}

TEST_F(Streams, an_error_steers_no_terminal) {
  EXPECT_EQ(line_.shell("$h train --resume $'no\\e[31m\\nrun' 2> err"), 4);
  EXPECT_EQ(line_.read("err").find('\x1b'), std::string::npos);
  EXPECT_NE(line_.read("err").find("no\\x1b[31m\\nrun"), std::string::npos) << line_.read("err");
}

TEST_F(Streams, an_error_that_cannot_be_printed_keeps_its_exit_code) {
  EXPECT_EQ(line_.shell("$h train nosuch.toml 2>&-"), 2);
  EXPECT_EQ(line_.shell("$h generate nosuch 2>&-"), 4);
  if (full_device_exists()) {
    EXPECT_EQ(line_.shell("$h train nosuch.toml 2> /dev/full"), 2);
  }
}

}  // namespace
}  // namespace handgrad::test
