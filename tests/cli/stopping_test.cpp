#include "cli/stopping.h"

#include "handgrad/core/files.h"

namespace handgrad {
namespace {

using test::CommandLine;
using test::Outcome;

TEST(Stopping, a_signal_finishes_the_step_saves_and_can_be_resumed) {
  for (const int signal : {SIGINT, SIGTERM}) {
    CommandLine line;
    line.prepare("[checkpoint]\nevery = 1000000\n");
    auto process = line.start(test::train_arguments("run", 1000000));
    ASSERT_TRUE(process.wait_for("step 1 "));
    process.send(signal);
    const Outcome outcome = process.wait();
    EXPECT_EQ(outcome.exit_code, 128 + signal);
    EXPECT_EQ(outcome.err, "");
    const Index step = test::last_acknowledged(outcome.out);
    EXPECT_EQ(outcome.last_line(),
              "stopped after step " + std::to_string(step) + "; go on with: handgrad train --resume run");
    test::expect_same_as_never_stopped(line, "run", step);
  }
}

TEST(Stopping, a_second_signal_of_either_kind_ends_it_at_once) {
  for (const int second : {SIGINT, SIGTERM}) {
    CommandLine line;
    line.prepare();
    // A step takes longer than the test has patience for.
    auto arguments = test::train_arguments("run", 10);
    for (const char* key : {"train.batch_size=64", "train.accumulation=65536"}) {
      arguments.insert(arguments.end(), {"--set", key});
    }
    auto process = line.start(arguments);
    ASSERT_TRUE(process.wait_for("1 thread"));
    while (!line.exists("run/metrics.jsonl")) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    process.send(SIGINT);
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    process.send(second);
    const Outcome outcome = process.wait();
    EXPECT_EQ(outcome.exit_code, 128 + second);
    EXPECT_EQ(outcome.out.find("stopped after"), std::string::npos);
    EXPECT_TRUE(checkpoint_steps(line / "run").empty());
  }
}

TEST(Stopping, killed_at_random_moments_nothing_acknowledged_is_lost) { test::kill_again_and_again(8); }

}  // namespace
}  // namespace handgrad
