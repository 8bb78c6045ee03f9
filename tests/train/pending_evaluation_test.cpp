#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "handgrad/checkpoint/run_folder.h"
#include "handgrad/files/durable_write.h"
#include "handgrad/files/file_system.h"
#include "handgrad/files/read_file.h"
#include "handgrad/train/run.h"
#include "support/failing_files.h"
#include "support/temporary_folder.h"
#include "support/training.h"

// A step is saved before its evaluation begins. A run that ends between the two (killed, or stopped by a signal) makes
// the evaluation first when it is resumed. Its rows, best loss, patience and files are those of the uninterrupted run.

namespace handgrad {
namespace {

namespace files = std::filesystem;
using TrainingRun = Run;  // in a test body, Run is a member of testing::Test
using test::TemporaryFolder;

// Evaluates and saves every third step. The learning rate is so high that the best loss occurs early, and patience
// takes effect.
Config config_for(Index patience) {
  Config config = test::tiny_config();
  config.train.steps = 20, config.eval.every = 3, config.checkpoint.every = 3, config.checkpoint.keep = 30;
  config.eval.patience = patience, config.log.every = 7, config.optimizer.lr = 0.3;
  return config;
}

Trainer trainer_for(const Config& config, const std::string& folder) {
  auto newest = newest_checkpoint(folder);
  if (!newest.checkpoint) return {config, test::tiny_source(config)};
  return Trainer::resume(*newest.checkpoint, config, test::tiny_source(config));
}

void finish(TrainingRun& run) {
  while (!run.done()) run.advance();
}

// The rows of metrics.jsonl without times.
std::string rows_of(const std::string& folder) {
  std::string text;
  std::ifstream file(folder + "/metrics.jsonl");
  for (std::string line; std::getline(file, line);) {
    auto row = nlohmann::ordered_json::parse(line);
    row.erase("tokens_per_s"), row.erase("elapsed_s");
    text += row.dump() + "\n";
  }
  return text;
}

void expect_same_run(const std::string& folder, const std::string& straight) {
  EXPECT_EQ(rows_of(folder), rows_of(straight));
  const auto names = handgrad::files::list_folder(posix_files(), straight + "/checkpoints");
  ASSERT_EQ(handgrad::files::list_folder(posix_files(), folder + "/checkpoints"), names);
  for (const std::string& name : names) {
    EXPECT_TRUE(handgrad::files::read_file(folder + "/checkpoints/" + name) ==
                handgrad::files::read_file(straight + "/checkpoints/" + name))
        << name;
  }
  EXPECT_EQ(files::read_symlink(folder + "/checkpoints/best.h5"),
            files::read_symlink(straight + "/checkpoints/best.h5"));
}

class PendingEvaluation : public test::OneThread {};

// Copies the run folder at the beginning of each evaluation, as a kill would leave it.
struct Snapshots : TrainObserver {
  std::string from, to;
  Index evaluations = 0;
  Index batch = 0;
  void on_step(const StepReport&) override { batch = 0; }
  void on_evaluating(Index, Index) override {
    if (batch++ > 0) return;
    files::copy(from, to + std::to_string(++evaluations),
                files::copy_options::recursive | files::copy_options::copy_symlinks);
  }
};

TEST_F(PendingEvaluation, killed_between_save_and_evaluation_it_is_the_unbroken_run) {
  for (const Index patience : {Index{0}, Index{2}}) {
    const TemporaryFolder folder;
    const Config config = config_for(patience);
    Snapshots snapshots;
    snapshots.from = folder / "straight", snapshots.to = folder / "killed";
    TrainingRun straight(trainer_for(config, ""), folder / "straight");
    straight.trainer().observe(snapshots);
    finish(straight);
    const LoopState& end = straight.trainer().loop();
    EXPECT_EQ(end.step<20, patience> 0);
    ASSERT_GE(snapshots.evaluations, 3) << "best early, then patience";
    for (Index i = 1; i <= snapshots.evaluations; ++i) {
      SCOPED_TRACE(i);
      const std::string killed = folder / "killed" + std::to_string(i);
      const Checkpoint newest = *find_checkpoint(killed).checkpoint;
      EXPECT_TRUE(newest.loop().evaluation_pending);
      EXPECT_EQ(newest.loop().step, i < snapshots.evaluations || patience > 0 ? 3 * i : 20) << "no step is lost";
      TrainingRun run(trainer_for(config, killed), killed);
      EXPECT_FALSE(run.done());
      EXPECT_EQ(run.advance(), std::nullopt) << "the evaluation alone";
      EXPECT_EQ(run.trainer().loop().step, newest.loop().step);
      finish(run);
      EXPECT_EQ(test::state_of(run.trainer()) == test::state_of(straight.trainer()), true);
      EXPECT_EQ(run.trainer().loop().best_step, end.best_step);
      expect_same_run(killed, folder / "straight");
    }
  }
}

// The evaluation is completed and logged. The kill comes before the checkpoint with its result is written.
TEST_F(PendingEvaluation, killed_between_evaluation_and_second_save_it_is_the_unbroken_run) {
  const TemporaryFolder folder;
  const Config config = config_for(0);
  TrainingRun straight(trainer_for(config, ""), folder / "straight");
  finish(straight);
  struct Killer : TrainObserver {
    Index at = 0;
    void on_evaluation(const EvaluationReport& report) override {
      if (report.step == at) throw std::runtime_error("killed");
    }
  };
  for (const Index step : {3, 9, 20}) {
    SCOPED_TRACE(step);
    const std::string path = folder / std::to_string(step);
    {
      Killer killer;
      killer.at = step;
      TrainingRun run(trainer_for(config, ""), path);
      run.trainer().observe(killer);
      EXPECT_THROW(finish(run), std::runtime_error);
      std::ofstream(path + "/metrics.jsonl", std::ios::app)
          << "{\"step\":" << step << ",\"split\":\"val\",\"loss\":1}\n";
    }
    TrainingRun run(trainer_for(config, path), path);
    finish(run);
    expect_same_run(path, folder / "straight");
  }
}

// The second save does not depend on the result: the checkpoint of a step that is not the best also contains its
// evaluation.
TEST_F(PendingEvaluation, the_checkpoint_of_an_evaluated_step_holds_its_result) {
  const TemporaryFolder folder;
  TrainingRun run(trainer_for(config_for(0), ""), folder / "run");
  Index not_best = 0;
  while (!run.done()) {
    run.advance();
    const LoopState& loop = run.trainer().loop();
    if (loop.step % 3 != 0) continue;
    const Checkpoint saved = Checkpoint::load(checkpoint_path(folder / "run", loop.step));
    EXPECT_FALSE(saved.loop().evaluation_pending) << loop.step;
    EXPECT_EQ(saved.loop().evaluations_since_best, loop.evaluations_since_best) << loop.step;
    not_best += loop.best_step == loop.step ? 0 : 1;
  }
  EXPECT_GT(not_best, 0);
}

TEST_F(PendingEvaluation, a_stop_request_ends_an_evaluation_and_loses_nothing) {
  const TemporaryFolder folder;
  const Config config = config_for(0);
  TrainingRun straight(trainer_for(config, ""), folder / "straight");
  finish(straight);
  struct Stopper : TrainObserver {
    std::stop_source stop;
    Index step = 0;
    void on_step(const StepReport& report) override { step = report.step; }
    void on_evaluating(Index, Index) override {
      if (step == 6) stop.request_stop();
    }
  } stopper;
  {
    TrainingRun run(trainer_for(config, ""), folder / "run");
    run.trainer().observe(stopper);
    while (!run.done() && !stopper.stop.stop_requested()) run.advance(stopper.stop.get_token());
    EXPECT_EQ(run.trainer().loop().step, 6);
    EXPECT_TRUE(run.trainer().loop().evaluation_pending);
    run.save();
  }
  EXPECT_EQ(rows_of(folder / "run").find("\"step\":6,\"split\":\"val\""), std::string::npos);
  TrainingRun run(trainer_for(config, folder / "run"), folder / "run");
  finish(run);
  expect_same_run(folder / "run", folder / "straight");
}

TEST_F(PendingEvaluation, a_programs_own_loop_may_go_on_without_it) {
  const Config config = config_for(0);
  Trainer trainer(config, test::tiny_source(config));
  trainer.step();
  trainer.postpone_evaluation();
  const TemporaryFolder folder;
  trainer.save(folder / "a.h5");
  auto resumed = Trainer::resume(folder / "a.h5", test::tiny_source(config));
  EXPECT_TRUE(resumed.loop().evaluation_pending);
  resumed.step();
  EXPECT_FALSE(resumed.loop().evaluation_pending);
}

// A run with an unchanged config on a full disk: nothing needs to be written before the first step.
TEST_F(PendingEvaluation, a_full_disk_does_not_keep_a_run_from_going_on) {
  const TemporaryFolder folder;
  const Config config = config_for(0);
  {
    TrainingRun run(trainer_for(config, ""), folder / "run");
    for (int i = 0; i < 4; ++i) run.advance();
    run.save();
  }
  test::FailingFiles full([](int, const std::string& name) { return name == "write" ? -ENOSPC : 0; });
  auto resume = [&] { TrainingRun run(trainer_for(config, folder / "run"), folder / "run", &full); };
  EXPECT_NO_THROW(resume());
}

}  // namespace
}  // namespace handgrad
