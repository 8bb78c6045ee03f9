#pragma once

#include <gtest/gtest.h>

#include <csignal>
#include <random>
#include <thread>

#include "handgrad/checkpoint/run_folder.h"
#include "support/command_line.h"

namespace handgrad::test {

/// The arguments of a run of the given number of steps; its learning rates do not depend on that number.
inline std::vector<std::string> train_arguments(const std::string& out, Index steps) {
  return {"train",    "tiny.toml",
          "--out",    out,
          "--resume", "auto",
          "--set",    "schedule.kind=constant",
          "--set",    "train.steps=" + std::to_string(steps)};
}

/// The stopped run, continued for two steps, and a run that was never stopped end in the same checkpoint.
inline void expect_same_as_never_stopped(const CommandLine& line, const std::string& stopped, Index step) {
  ASSERT_EQ(line.run(train_arguments(stopped, step + 2)).exit_code, 0);
  ASSERT_EQ(line.run(train_arguments("straight-" + stopped, step + 2)).exit_code, 0);
  EXPECT_EQ(line.read(stopped + "/checkpoints/" + checkpoint_name(step + 2)),
            line.read("straight-" + stopped + "/checkpoints/" + checkpoint_name(step + 2)));
}

/// N of the last complete line "saved step N"; -1 if there is none.
inline Index last_acknowledged(const std::string& out) {
  const std::size_t at = out.rfind("saved step ", out.rfind('\n'));
  return at == std::string::npos ? -1 : std::stol(out.substr(at + 11));
}

/// Kills a run that saves every step, at random moments. Every step that it reported as saved has a valid checkpoint.
inline void kill_again_and_again(int kills) {
  CommandLine line;
  line.prepare("[checkpoint]\nevery = 1\n");
  std::mt19937 random(1);
  Index acknowledged = -1;
  unsigned longest_ms = 120;
  for (int i = 0; i < kills || acknowledged < 1; ++i) {
    Process process = line.start(train_arguments("run", 1000000));
    std::this_thread::sleep_for(std::chrono::milliseconds(5 + random() % longest_ms));
    process.send(SIGKILL);
    const Outcome outcome = process.wait();
    EXPECT_EQ(outcome.exit_code, 128 + SIGKILL);
    EXPECT_EQ(outcome.err, "");
    acknowledged = std::max(acknowledged, last_acknowledged(outcome.out));
    if (acknowledged < 0) {
      longest_ms += longest_ms / 4;  // allows for a slow machine, whose first save takes longer
      continue;
    }
    const FoundCheckpoint found = find_checkpoint(line / "run");
    EXPECT_TRUE(found.passed_over.empty());
    ASSERT_GE(found.checkpoint->loop().step, acknowledged) << "after " << i + 1 << " kills";
  }
  ASSERT_GT(acknowledged, 0);
  expect_same_as_never_stopped(line, "run", find_checkpoint(line / "run").checkpoint->loop().step);
}

}  // namespace handgrad::test
