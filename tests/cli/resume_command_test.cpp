#include <gtest/gtest.h>

#include <filesystem>

#include "support/checkpoint_editor.h"
#include "support/command_line.h"

// The messages of train when a run is resumed: the step it continues from, the changes, and the remedy if it cannot
// continue.

namespace handgrad::test {
namespace {

class ResumeCommand : public ::testing::Test {
 protected:
  void SetUp() override { line_.prepare(); }
  Outcome train(std::vector<std::string> arguments, Launch launch = {}) {
    arguments.insert(arguments.begin(), "train");
    return line_.run(arguments, std::move(launch));
  }
  CommandLine line_;
};

bool says(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST_F(ResumeCommand, a_path_that_does_not_exist_is_named) {
  const Outcome outcome = train({"--resume", "runs/nosuch"});
  EXPECT_EQ(outcome.exit_code, 4);
  EXPECT_EQ(outcome.err, "error: train: --resume runs/nosuch: no such file or directory\n");
}

TEST_F(ResumeCommand, a_run_in_the_place_of_a_config_is_understood) {
  ASSERT_EQ(train({"tiny.toml", "--out", "r"}).exit_code, 0);
  Outcome outcome = train({"r"});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_EQ(outcome.err, "error: train: r: is a run folder; handgrad train --resume r continues it\n");
  outcome = train({"r", "--resume", "auto", "--set", "train.steps=8"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_TRUE(says(outcome.out, "continuing after step 6\n"));
  std::filesystem::create_directory(line_ / "empty");
  EXPECT_EQ(train({"empty"}).err, "error: train: empty: is a directory; CONFIG must be a file\n");
}

// The default run folder depends on the working directory.
TEST_F(ResumeCommand, auto_says_where_it_begins_anew) {
  Outcome outcome = train({"tiny.toml", "--resume", "auto"});
  EXPECT_EQ(outcome.out.rfind(line_ / "runs/tiny" + ": no checkpoint yet; starting at step 0\n", 0), 0u) << outcome.out;
  outcome = train({"tiny.toml", "--resume", "auto"});
  EXPECT_EQ(outcome.out, "runs/tiny: finished at step 6; --set train.steps=N extends it\n");
  std::filesystem::create_directory(line_ / "sub");
  Launch elsewhere;
  elsewhere.folder = line_ / "sub";
  outcome = train({"../tiny.toml", "--resume", "auto"}, elsewhere);
  EXPECT_EQ(outcome.out.rfind(line_ / "sub/runs/tiny" + ": no checkpoint yet; starting at step 0\n", 0), 0u)
      << outcome.out;
}

TEST_F(ResumeCommand, a_config_without_a_name_asks_for_out) {
  EXPECT_EQ(line_.shell("$h train <(cat tiny.toml) 2> err"), 2);
  EXPECT_TRUE(says(line_.read("err"), "error: train: --out DIR is needed: /dev/fd/")) << line_.read("err");
  EXPECT_FALSE(line_.exists("runs"));
}

// The cosine over 200 steps has fallen to 1.0007e-4; over 400 steps it is still 5.8716e-4.
TEST_F(ResumeCommand, a_rate_that_jumps_is_said) {
  line_.prepare("[optimizer]\nlr = 1e-3\nmin_lr = 1e-4\n");
  std::vector<std::string> first = {"tiny.toml", "--out", "r", "--quiet"};
  for (const char* key : {"train.steps=200", "schedule.warmup_steps=20", "eval.every=200"}) {
    first.insert(first.end(), {"--set", key});
  }
  ASSERT_EQ(train(first).exit_code, 0);
  Outcome outcome = train({"--resume", "r", "--set", "train.steps=400"});
  EXPECT_TRUE(says(outcome.out,
                   "train.steps: 200 -> 400\nlearning rate of the next update: 1.000e-04 -> 5.872e-04 (the "
                   "schedule now ends at step 400; --set schedule.kind=constant --set "
                   "optimizer.lr=1.000e-04 keeps the rate)\n"))
      << outcome.out;
  // The advice of the message works, and keeps the rate.
  outcome = train({"--resume", "r", "--set", "train.steps=402", "--set", "schedule.kind=constant", "--set",
                   "optimizer.lr=1.000e-04"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_TRUE(says(outcome.out, "step 401  loss")) << outcome.out;
  EXPECT_TRUE(says(outcome.out, "lr 1.000e-04")) << outcome.out;
  EXPECT_FALSE(says(outcome.out, "learning rate of the next update")) << "a rate that stays is no news";
}

TEST_F(ResumeCommand, patience_is_named_as_the_reason_and_the_key_that_helps_works) {
  std::vector<std::string> first = {"tiny.toml", "--out", "r"};
  for (const char* key : {"train.steps=60", "eval.every=1", "eval.patience=2", "optimizer.lr=0.5"}) {
    first.insert(first.end(), {"--set", key});
  }
  Outcome outcome = train(first);
  ASSERT_EQ(outcome.exit_code, 0);
  EXPECT_TRUE(says(outcome.out, "stopped at step ")) << outcome.out;
  EXPECT_TRUE(says(outcome.out, "; --set eval.patience=0 continues to step 60\n")) << outcome.out;
  EXPECT_TRUE(says(outcome.out, "r/checkpoints/best.h5 is the checkpoint of step ")) << outcome.out;
  outcome = train({"--resume", "r"});
  EXPECT_TRUE(says(outcome.out, " by eval.patience = 2; --set eval.patience=0 continues to step 60\n")) << outcome.out;
  outcome = train({"--resume", "r", "--set", "eval.patience=0"});
  EXPECT_TRUE(says(outcome.out, "finished at step 60; best validation loss ")) << outcome.out;
}

TEST_F(ResumeCommand, a_rate_below_the_floor_is_refused_with_a_floor_that_fits) {
  ASSERT_EQ(train({"tiny.toml", "--out", "r"}).exit_code, 0);
  const std::vector<std::string> fine = {"tiny.toml", "--init", "r", "--out", "f", "--set", "optimizer.lr=5e-05"};
  const Outcome refused = train(fine);
  EXPECT_EQ(refused.exit_code, 2);
  const std::size_t at = refused.err.find("optimizer.min_lr=");
  ASSERT_NE(at, std::string::npos) << refused.err;
  std::vector<std::string> advised = fine;
  advised.insert(advised.end(), {"--set", refused.err.substr(at, refused.err.find_first_of(" \n", at) - at)});
  EXPECT_EQ(train(advised).exit_code, 0) << advised.back();
}

TEST_F(ResumeCommand, an_earlier_checkpoint_goes_on_in_another_folder_as_the_refusal_says) {
  ASSERT_EQ(train({"tiny.toml", "--out", "r", "--set", "checkpoint.every=2", "--set", "checkpoint.keep=9"}).exit_code,
            0);
  const std::string two = "r/checkpoints/step-00000002.h5";
  Outcome outcome = train({"--resume", two});
  EXPECT_EQ(outcome.exit_code, 4);
  EXPECT_EQ(outcome.err, "error: " + (line_ / "r") +
                             ": contains a later checkpoint (step 6) than the one to resume (step 2); handgrad train "
                             "--resume " +
                             two + " --out DIR continues from the earlier one in another folder\n");
  EXPECT_EQ(train({"--resume", two, "--out", "other"}).exit_code, 0);
  EXPECT_TRUE(line_.read("other/checkpoints/step-00000006.h5") == line_.read("r/checkpoints/step-00000006.h5"));
}

TEST_F(ResumeCommand, a_changed_text_is_told_by_its_size) {
  ASSERT_EQ(train({"tiny.toml", "--out", "r", "--set", "tokenizer.kind=byte"}).exit_code, 0);
  line_.write("text.txt", line_.read("text.txt") + "one line more\n");
  const Outcome outcome = train({"--resume", "r", "--set", "train.steps=8"});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_TRUE(says(outcome.err,
                   "data.files: the text is not the one that this run was trained on (400 tokens then, 414 "
                   "now); git or an editor may have changed its line ends; --init starts a new run with these weights"))
      << outcome.err;
}

// Another kernel or instruction set gives other bits, so equal bits are not promised.
TEST_F(ResumeCommand, other_numerics_are_said) {
  ASSERT_EQ(train({"tiny.toml", "--out", "r"}).exit_code, 0);
  EXPECT_EQ(train({"--resume", "r", "--set", "train.steps=7"}).err, "");
  const std::string path = line_ / "r/checkpoints/step-00000007.h5";
  edit_checkpoint(path,
                  [](CheckpointEditor& editor) { editor.set_attribute("/", "instructions", std::string("AVX1024")); });
  const Outcome outcome = train({"--resume", "r", "--set", "train.steps=8"});
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_TRUE(says(outcome.err, "with AVX1024, this program uses numerics ")) << outcome.err;
  EXPECT_TRUE(says(outcome.err, "the run continues, but its bits will differ from those of the uninterrupted run\n"));
}

// With an unchanged config, nothing needs to be written before the first step.
TEST_F(ResumeCommand, the_config_of_a_run_is_not_rewritten_unchanged) {
  ASSERT_EQ(train({"tiny.toml", "--out", "r"}).exit_code, 0);
  const auto before = std::filesystem::last_write_time(line_ / "r/config.toml");
  std::filesystem::last_write_time(line_ / "r/config.toml", before - std::chrono::hours(1));
  ASSERT_EQ(train({"--resume", "r", "--set", "train.steps=8"}).exit_code, 0);
  const auto changed = std::filesystem::last_write_time(line_ / "r/config.toml");
  EXPECT_GT(changed, before - std::chrono::hours(1)) << "steps changed";
  std::filesystem::last_write_time(line_ / "r/config.toml", before - std::chrono::hours(1));
  std::filesystem::remove(line_ / "r/checkpoints/step-00000008.h5");
  ASSERT_EQ(train({"--resume", "r"}).exit_code, 0);
  EXPECT_EQ(std::filesystem::last_write_time(line_ / "r/config.toml"), before - std::chrono::hours(1));
}

}  // namespace
}  // namespace handgrad::test
