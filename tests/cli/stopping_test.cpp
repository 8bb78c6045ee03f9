#include "cli/stopping.h"

#include <algorithm>

namespace handgrad {
namespace {

using test::CommandLine;
using test::Outcome;

constexpr const char* acknowledgement =
    "stopping, then saving (a second Ctrl-C ends at once: all steps would be lost)\n";

TEST(Stopping, a_signal_finishes_the_step_saves_and_can_be_resumed) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGUSR1}) {
    CommandLine line;
    line.prepare("[checkpoint]\nevery = 1000000\n");
    auto process = line.start(test::train_arguments("run", 1000000));
    ASSERT_TRUE(process.wait_for("step 1 "));
    process.send(signal);
    const Outcome outcome = process.wait();
    EXPECT_EQ(outcome.exit_code, 128 + signal);
    // The best checkpoint may have been saved already. The acknowledgement then names the steps that would be lost.
    EXPECT_EQ(outcome.err.rfind("stopping, then saving (a second Ctrl-C ends at once: ", 0), 0u) << outcome.err;
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
    const Index step = test::last_acknowledged(outcome.out);
    EXPECT_EQ(outcome.last_line(),
              "stopped after step " + std::to_string(step) + "; continue with: handgrad train --resume run");
    test::expect_same_as_never_stopped(line, "run", step);
  }
}

// `timeout` signals the child and then its process group; a person who holds Ctrl-C down sends dozens of signals.
TEST(Stopping, a_burst_of_signals_counts_as_one) {
  CommandLine line;
  line.prepare("[checkpoint]\nevery = 1000000\n");
  auto process = line.start(test::train_arguments("run", 1000000));
  ASSERT_TRUE(process.wait_for("step 1 "));
  for (int i = 0; i < 200; ++i) process.send(i % 3 == 0 ? SIGTERM : i % 3 == 1 ? SIGINT : SIGHUP);
  const Outcome outcome = process.wait();
  EXPECT_EQ(outcome.exit_code - 128, outcome.exit_code == 128 + SIGTERM  ? SIGTERM
                                     : outcome.exit_code == 128 + SIGINT ? SIGINT
                                                                         : SIGHUP);
  const Index step = test::last_acknowledged(outcome.out);
  ASSERT_GE(step, 1) << outcome.err;
  test::expect_same_as_never_stopped(line, "run", step);
}

TEST(Stopping, a_signal_that_was_ignored_at_the_start_stays_ignored) {
  CommandLine line;
  line.prepare();
  test::Launch launch;
  launch.ignored_signals = {SIGHUP, SIGINT};
  auto process = line.start(test::train_arguments("run", 60), launch);
  ASSERT_TRUE(process.wait_for("step 1 "));
  process.send(SIGHUP);
  process.send(SIGINT);
  const Outcome outcome = process.wait();
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_EQ(outcome.err, "");
}

// A step that takes longer than any test waits.
std::vector<std::string> endless_step() {
  auto arguments = test::train_arguments("run", 10);
  for (const char* key : {"train.batch_size=64", "train.accumulation=65536"}) {
    arguments.insert(arguments.end(), {"--set", key});
  }
  return arguments;
}

TEST(Stopping, a_second_signal_half_a_second_later_ends_it_at_once) {
  for (const int second : {SIGINT, SIGTERM}) {
    CommandLine line;
    line.prepare();
    auto process = line.start(endless_step());
    ASSERT_TRUE(process.wait_for("1 thread"));
    while (!line.exists("run/metrics.jsonl")) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    process.send(SIGUSR1);  // not a first signal: batch systems send SIGTERM after it
    std::this_thread::sleep_for(std::chrono::milliseconds(600));
    process.send(SIGINT);
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    process.send(second);  // too soon to be deliberate
    std::this_thread::sleep_for(std::chrono::milliseconds(700));
    process.send(second);
    const Outcome outcome = process.wait();
    EXPECT_EQ(outcome.exit_code, 128 + second);
    EXPECT_EQ(outcome.err, std::string(acknowledgement) + acknowledgement);
    EXPECT_EQ(outcome.out.find("stopped after"), std::string::npos);
    EXPECT_TRUE(checkpoint_steps(line / "run").empty());
  }
}

// The step was saved before its evaluation. The evaluation is interrupted, and made first when the run is resumed.
TEST(Stopping, a_signal_ends_an_evaluation) {
  CommandLine line;
  line.prepare("[checkpoint]\nevery = 3\n");
  line.write("text.txt", std::string(3'000'000, 'a') + "the fox saw a hen");
  std::vector<std::string> arguments = test::train_arguments("run", 6);
  for (const char* key : {"eval.batches=1000000", "model.d_model=64", "data.validation_fraction=0.5"}) {
    arguments.insert(arguments.end(), {"--set", key});
  }
  auto process = line.start(arguments);
  ASSERT_TRUE(process.wait_for("saved step 3"));
  process.send(SIGTERM);
  const Outcome outcome = process.wait();
  EXPECT_EQ(outcome.exit_code, 128 + SIGTERM);
  EXPECT_EQ(outcome.last_line(), "stopped after step 3; continue with: handgrad train --resume run");
  EXPECT_EQ(outcome.out.find("validation loss"), std::string::npos);
  EXPECT_TRUE(find_checkpoint(line / "run").checkpoint->loop().evaluation_pending);
}

TEST(Stopping, commands_without_anything_to_save_end_at_once) {
  CommandLine line;
  line.prepare();
  ASSERT_EQ(line.run({"train", "tiny.toml", "--out", "run"}).exit_code, 0);
  auto process = line.start({"bench", "tiny.toml", "--steps", "1000000", "--set", "model.vocab_size=64"});
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  process.send(SIGTERM);
  EXPECT_EQ(process.wait().exit_code, 128 + SIGTERM);
  auto writing = line.start({"generate", "run", "-n", "100000000"});
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  writing.send(SIGINT);
  EXPECT_EQ(writing.wait().exit_code, 128 + SIGINT);
}

TEST(Stopping, killed_at_random_moments_nothing_acknowledged_is_lost) { test::kill_again_and_again(8); }

}  // namespace
}  // namespace handgrad
