#include <gtest/gtest.h>

#include <filesystem>

#include "support/command_line.h"

// train refuses folders that it must not write to: those of another run, and those with a user's own files.

namespace handgrad::test {
namespace {

namespace files = std::filesystem;

class Folders : public ::testing::Test {
 protected:
  void SetUp() override { line_.prepare(); }
  Outcome train(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "train");
    return line_.run(arguments);
  }
  CommandLine line_;
};

}  // namespace

TEST_F(Folders, a_config_of_ones_own_is_never_written_over) {
  files::create_directory(line_ / "own");
  line_.write("own/config.toml", line_.read("tiny.toml"));
  line_.write("own/text.txt", line_.read("text.txt"));
  const std::string before = line_.read("own/config.toml");
  EXPECT_EQ(train({"own/config.toml"}).exit_code, 0);
  EXPECT_EQ(line_.read("own/config.toml"), before);
  EXPECT_TRUE(files::exists(line_ / "runs/config/config.toml"));
  for (const char* how : {"--quiet", "--overwrite"}) {
    const Outcome refused = train({"tiny.toml", "--out", "own", how});
    EXPECT_EQ(refused.exit_code, 4);
    EXPECT_EQ(refused.err, "error: own: contains other files, but no run; choose another folder with --out\n");
  }
  EXPECT_EQ(line_.read("own/config.toml"), before);
}

TEST_F(Folders, a_run_is_not_resumed_into_another_run) {
  EXPECT_EQ(train({"tiny.toml", "--out", "a"}).exit_code, 0);
  EXPECT_EQ(train({"tiny.toml", "--out", "b", "--set", "train.seed=99"}).exit_code, 0);
  const std::string before = line_.everything();
  const Outcome refused = train({"--resume", "a", "--out", "b", "--set", "train.steps=100"});
  EXPECT_EQ(refused.exit_code, 4);
  EXPECT_EQ(refused.err, "error: b: contains another run than the one to resume; choose another folder with --out\n");
  EXPECT_EQ(line_.everything(), before);
}

TEST_F(Folders, a_path_may_end_in_a_slash) {
  EXPECT_EQ(train({"tiny.toml", "--out", "a"}).exit_code, 0);
  for (const char* path : {"a", "a/", "a/checkpoints", "a/checkpoints/", "a/checkpoints/latest.h5"}) {
    EXPECT_EQ(line_.run({"generate", path, "--tokens", "3"}).exit_code, 0) << path;
    const Outcome outcome = train({"--resume", path});
    EXPECT_EQ(outcome.exit_code, 0) << path << outcome.err;
    EXPECT_NE(outcome.out.find("finished at step"), std::string::npos) << path;
  }
}

TEST_F(Folders, an_empty_path_is_a_mistake) {
  for (const char* option : {"--out", "--resume", "--init"}) {
    const Outcome outcome = train({"tiny.toml", option, ""});
    EXPECT_EQ(outcome.exit_code, 2);
    EXPECT_EQ(outcome.err, std::string("error: train: ") + option + ": expected a path, got an empty value\n");
  }
}

TEST_F(Folders, a_sample_prompt_that_cannot_be_written_is_refused_before_the_first_step) {
  const Outcome outcome =
      train({"tiny.toml", "--out", "s", "--set", "sample.every=1", "--set", "sample.prompt=\"\u00e9\""});
  EXPECT_EQ(outcome.exit_code, 4);
  EXPECT_EQ(outcome.err.rfind("error: sample.prompt: unknown character", 0), 0u) << outcome.err;
  EXPECT_FALSE(files::exists(line_ / "s"));
}

TEST_F(Folders, inspect_says_what_it_passed_over) {
  EXPECT_EQ(train({"tiny.toml", "--out", "a", "--set", "checkpoint.every=1"}).exit_code, 0);
  const std::string newest = "a/checkpoints/" + files::read_symlink(line_ / "a/checkpoints/latest.h5").string();
  std::string bytes = line_.read(newest);
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
  line_.write(newest, bytes);
  const Outcome outcome = line_.run({"inspect", "a"});
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_EQ(outcome.err.rfind("note: passed over ", 0), 0u) << outcome.err;
}

}  // namespace handgrad::test
