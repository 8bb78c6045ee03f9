#include "handgrad/train/run.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "handgrad/checkpoint/run_folder.h"
#include "handgrad/config/describe.h"
#include "handgrad/config/parse.h"
#include "handgrad/core/errors.h"
#include "handgrad/files/durable_write.h"
#include "handgrad/files/file_system.h"
#include "handgrad/files/read_file.h"
#include "support/failing_files.h"
#include "support/message.h"
#include "support/temporary_folder.h"
#include "support/training.h"

namespace handgrad {
namespace {

namespace files = std::filesystem;
using Json = nlohmann::ordered_json;
using TrainingRun = Run;  // in a test body, Run is a member of testing::Test
using test::FailingFiles;
using test::message_of;
using test::TemporaryFolder;
using test::tiny_config;
using test::tiny_source;

Trainer new_trainer(const Config& config = tiny_config()) { return {config, tiny_source(config)}; }

Trainer resumed_trainer(const std::string& folder, const Config& config = tiny_config()) {
  return Trainer::resume(*find_checkpoint(folder).checkpoint, config, tiny_source(config));
}

void finish(TrainingRun& run) {
  while (!run.done()) run.advance();
}

std::vector<Json> rows_of(const std::string& folder) {
  std::vector<Json> rows;
  std::ifstream file(folder + "/metrics.jsonl");
  for (std::string line; std::getline(file, line);) rows.push_back(Json::parse(line));
  return rows;
}

// The rows of metrics.jsonl without times.
std::string metrics_of(const std::string& folder) {
  std::string text;
  for (Json row : rows_of(folder)) {
    row.erase("tokens_per_s"), row.erase("elapsed_s");
    text += row.dump() + "\n";
  }
  return text;
}

std::vector<std::string> checkpoints_in(const std::string& folder) {
  return handgrad::files::list_folder(posix_files(), folder + "/checkpoints");
}

using Names = std::vector<std::string>;

class RunTest : public test::OneThread {};

TEST_F(RunTest, logs_what_the_config_asks_for) {
  const TemporaryFolder folder;
  Config config = tiny_config();
  config.log.every = 5, config.eval.every = 6;
  TrainingRun run(new_trainer(config), folder / "run");
  finish(run);
  std::string order;
  for (const Json& row : rows_of(folder / "run")) {
    order += row["split"].get<std::string>() + std::to_string(row["step"].get<Index>()) + " ";
    std::string keys;
    for (const auto& [key, value] : row.items()) keys += key + " ";
    EXPECT_EQ(keys, row["split"] == "train" ? "step split loss lr grad_norm tokens tokens_per_s elapsed_s "
                                            : "step split loss bits_per_byte ");
  }
  EXPECT_EQ(order, "train1 train5 val6 train10 train12 val12 ");
}

TEST_F(RunTest, numbers_that_json_does_not_have_are_strings) {
  const TemporaryFolder folder;
  Config config = tiny_config();
  config.eval.every = 1, config.checkpoint.every = 100;
  auto trainer = new_trainer(config);
  struct Spoiler : TrainObserver {
    Trainer* trainer = nullptr;
    void on_step(const StepReport&) override { trainer->mutable_model().store().mutable_values()[0] = std::nanf(""); }
  } spoiler;
  trainer.observe(spoiler);
  TrainingRun run(std::move(trainer), folder / "run");
  spoiler.trainer = &run.trainer();
  run.advance();
  const auto rows = rows_of(folder / "run");
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[1]["loss"], "nan");
  EXPECT_EQ(rows[1]["bits_per_byte"], "nan");
}

TEST_F(RunTest, keeps_the_last_checkpoints_and_the_best) {
  const TemporaryFolder folder;
  Config config = tiny_config();
  config.checkpoint.every = 1, config.checkpoint.keep = 2, config.eval.every = 100;
  TrainingRun run(new_trainer(config), folder / "run");
  for (int i = 0; i < 3; ++i) run.advance();
  // Without an evaluation there is no best checkpoint.
  EXPECT_EQ(checkpoints_in(run.folder()), (Names{"latest.h5", "step-00000002.h5", "step-00000003.h5"}));
  finish(run);
  EXPECT_EQ(checkpoints_in(run.folder()), (Names{"best.h5", "latest.h5", "step-00000011.h5", "step-00000012.h5"}));
  for (const char* link : {"best.h5", "latest.h5"}) {
    EXPECT_EQ(files::read_symlink(folder / "run/checkpoints/" + link), "step-00000012.h5") << link;
  }
}

TEST_F(RunTest, keeps_a_best_that_is_old) {
  const TemporaryFolder folder;
  Config config = tiny_config();
  config.checkpoint.keep = 1, config.eval.every = 1;
  auto trainer = new_trainer(config);
  trainer.step();
  trainer.evaluate();
  TrainingRun run(std::move(trainer), folder / "run");
  run.save();
  ASSERT_EQ(run.trainer().loop().best_step, 1);
  retain_checkpoints(posix_files(), run.folder(), 1, run.trainer().loop());
  for (const Index step : {2, 3, 4}) {
    files::copy(checkpoint_path(run.folder(), 1), checkpoint_path(run.folder(), step));
    LoopState loop = run.trainer().loop();
    loop.step = step;
    retain_checkpoints(posix_files(), run.folder(), 1, loop);
    EXPECT_EQ(checkpoint_steps(run.folder()), (std::vector<Index>{step, 1}));
  }
}

TEST_F(RunTest, keeps_its_own_files_beside_foreign_ones_of_the_same_name) {
  const TemporaryFolder folder;
  Config config = tiny_config();
  config.checkpoint.every = 1, config.checkpoint.keep = 2, config.eval.every = 100;
  TrainingRun run(new_trainer(config), folder / "run");
  for (int i = 0; i < 3; ++i) run.advance();
  files::remove(checkpoint_path(folder / "run", 2));
  files::create_directory(checkpoint_path(folder / "run", 2));
  run.advance();
  EXPECT_EQ(checkpoint_steps(folder / "run"), (std::vector<Index>{4, 3, 2}));
  run.advance();
  EXPECT_EQ(checkpoint_steps(folder / "run"), (std::vector<Index>{5, 4, 2}));
}

// Killed after the file was written and before its links were. Only the next save would renew them otherwise.
TEST_F(RunTest, links_are_made_good_when_it_goes_on) {
  const TemporaryFolder folder;
  Config config = tiny_config();
  config.checkpoint.every = 1, config.checkpoint.keep = 2, config.eval.every = 1;
  Index best = 0, step = 0;
  {
    TrainingRun run(new_trainer(config), folder / "run");
    for (int i = 0; i < 3; ++i) run.advance();
    best = run.trainer().loop().best_step, step = run.trainer().loop().step;
  }
  const std::string links = folder / "run/checkpoints/";
  handgrad::files::replace_link(posix_files(), "step-00000001.h5", links + "latest.h5");
  files::remove(links + "best.h5");
  const TrainingRun run(resumed_trainer(folder / "run", config), folder / "run");
  EXPECT_EQ(files::read_symlink(links + "latest.h5"), checkpoint_name(step));
  EXPECT_EQ(files::read_symlink(links + "best.h5"), checkpoint_name(best));
}

// Files of later steps were passed over: they must not displace valid checkpoints, and they must not be replaced.
TEST_F(RunTest, damaged_checkpoints_do_not_count_as_kept_and_are_set_aside) {
  const TemporaryFolder folder;
  Config config = tiny_config();
  config.checkpoint.every = 1, config.checkpoint.keep = 2, config.eval.every = 100;
  {
    TrainingRun run(new_trainer(config), folder / "run");
    for (int i = 0; i < 4; ++i) run.advance();
  }
  files::resize_file(checkpoint_path(folder / "run", 4), 1000);
  files::create_directory(checkpoint_path(folder / "run", 7));
  const FoundCheckpoint found = find_checkpoint(folder / "run");
  EXPECT_EQ(found.checkpoint->loop().step, 3);
  EXPECT_EQ(found.passed_over.size(), 2u);
  Config longer = config;
  longer.checkpoint.every = 100, longer.checkpoint.keep = 1;
  TrainingRun run(resumed_trainer(folder / "run", longer), folder / "run");
  const std::string four = checkpoint_path(folder / "run", 4) + ".set-aside";
  EXPECT_EQ(run.set_aside(), (Names{checkpoint_path(folder / "run", 7) + ".set-aside", four}));
  EXPECT_EQ(files::file_size(four), 1000u);
  EXPECT_EQ(checkpoint_steps(folder / "run"), std::vector<Index>{3});
  run.advance();
  run.save();  // step 4 again, valid
  EXPECT_EQ(checkpoint_steps(folder / "run"), std::vector<Index>{4});
  EXPECT_EQ(find_checkpoint(folder / "run").passed_over, Names{});
  EXPECT_EQ(files::file_size(four), 1000u);
}

TEST_F(RunTest, is_the_same_run_after_any_stop) {
  const TemporaryFolder folder;
  Config config = tiny_config();
  config.model.dropout = 0.1, config.eval.every = 3;
  TrainingRun straight(new_trainer(config), folder / "straight");
  finish(straight);
  for (const Index stop : {1, 5, 8}) {
    const std::string path = folder / std::to_string(stop);
    {
      TrainingRun run(new_trainer(config), path);
      while (run.trainer().loop().step < stop) run.advance();
      run.save();
      if (stop == 5) {  // a killed process may leave later rows, a torn row and a partly written file
        run.advance();
        std::ofstream(path + "/metrics.jsonl", std::ios::app) << "{\"step\": 7, \"spl";
        std::ofstream(path + "/checkpoints/step-00000006.h5.123-0.tmp") << "half";
      }
    }
    TrainingRun run(resumed_trainer(path, config), path);
    EXPECT_EQ(metrics_of(path), metrics_of(folder / "straight").substr(0, metrics_of(path).size()));
    finish(run);
    EXPECT_EQ(metrics_of(path), metrics_of(folder / "straight")) << "stopped at " << stop;
    EXPECT_EQ(test::state_of(run.trainer()), test::state_of(straight.trainer()));
    EXPECT_EQ(checkpoints_in(path).size(), checkpoints_in(folder / "straight").size());
    EXPECT_EQ(handgrad::files::read_file(path + "/checkpoints/latest.h5"),
              handgrad::files::read_file(folder / "straight/checkpoints/latest.h5"));
  }
}

TEST_F(RunTest, its_config_is_the_same_run) {
  const TemporaryFolder folder;
  Config config = tiny_config();
  config.optimizer.lr = 1.0 / 3.0, config.sample.prompt = "\"a\"\n\t\\";
  TrainingRun run(new_trainer(config), folder / "run");
  const ParsedConfig parsed = load_config(folder / "run/config.toml");
  EXPECT_EQ(to_toml(parsed.config), to_toml(run.trainer().config()));
}

TEST_F(RunTest, killed_before_its_first_checkpoint_starts_again) {
  const TemporaryFolder folder;
  {
    TrainingRun run(new_trainer(), folder / "run");
    for (int i = 0; i < 3; ++i) run.advance();  // then killed
  }
  EXPECT_FALSE(newest_checkpoint(folder / "run").checkpoint);
  TrainingRun run(new_trainer(), folder / "run");
  EXPECT_EQ(rows_of(folder / "run").size(), 0u);
  run.advance();
  EXPECT_EQ(rows_of(folder / "run").size(), 1u);
}

TEST_F(RunTest, has_one_writer) {
  const TemporaryFolder folder;
  TrainingRun run(new_trainer(), folder / "run");
  run.advance();
  const std::string metrics = metrics_of(folder / "run");
  EXPECT_EQ(message_of<DataError>([&] { TrainingRun(new_trainer(), folder / "run"); }),
            "cannot lock " + folder / "run" + ": another process is writing to this run");
  EXPECT_EQ(message_of<DataError>([&] { clear_run_folder(posix_files(), folder / "run"); }),
            "cannot lock " + folder / "run" + ": another process is writing to this run");
  EXPECT_EQ(metrics_of(folder / "run"), metrics);
}

TEST_F(RunTest, is_not_taken_back_by_one_who_read_it_before_another_went_on) {
  const TemporaryFolder place;
  const std::string folder = place / "run";
  {
    TrainingRun run(new_trainer(), folder);
    run.advance();
    run.save();
  }
  Trainer late = resumed_trainer(folder);
  {
    TrainingRun run(resumed_trainer(folder), folder);
    run.advance();
    run.save();
  }
  EXPECT_EQ(
      message_of<DataError>([&] { TrainingRun run(std::move(late), folder); }),
      folder +
          ": contains a later checkpoint (step 2) than that of this run (step 1); --resume auto continues from it");
}

TEST_F(RunTest, stopped_before_its_first_step_can_be_resumed_and_has_no_best) {
  const TemporaryFolder folder;
  {
    TrainingRun run(new_trainer(), folder / "run");
    run.save();
  }
  EXPECT_EQ(checkpoints_in(folder / "run"), (Names{"latest.h5", "step-00000000.h5"}));
  EXPECT_EQ(resumed_trainer(folder / "run").loop().step, 0);
}

// A run that is continued in another folder can be stopped and resumed there at once.
TEST_F(RunTest, in_another_folder_begins_with_a_checkpoint) {
  const TemporaryFolder folder;
  {
    TrainingRun run(new_trainer(), folder / "a");
    for (int i = 0; i < 4; ++i) run.advance();
  }
  {
    TrainingRun run(resumed_trainer(folder / "a"), folder / "b");
    run.save();
  }
  EXPECT_EQ(resumed_trainer(folder / "b").loop().step, 4);
}

TEST_F(RunTest, clearing_leaves_what_is_not_the_runs) {
  const TemporaryFolder folder;
  {
    TrainingRun run(new_trainer(), folder / "run");
    finish(run);
  }
  std::ofstream(folder / "run/notes.txt") << "mine";
  clear_run_folder(posix_files(), folder / "run");
  EXPECT_EQ(handgrad::files::list_folder(posix_files(), folder / "run"), (Names{"checkpoints", "lock", "notes.txt"}));
  EXPECT_EQ(checkpoints_in(folder / "run"), Names{});
  EXPECT_FALSE(is_run_folder(folder / "nothing"));
  clear_run_folder(posix_files(), folder / "nothing");
}

// Every file operation of a save fails once, in every way. The last saved checkpoint can still be resumed.
TEST_F(RunTest, a_save_that_fails_loses_nothing) {
  for (const int error : {EIO, ENOSPC}) {
    int calls = 1;
    for (int failing = 0; failing < calls; ++failing) {
      const TemporaryFolder folder;
      bool armed = false;
      int first = 0;
      FailingFiles fs([&](int number, const std::string&) { return armed && number - first == failing ? -error : 0; });
      Config config = tiny_config();
      config.checkpoint.keep = 1;
      TrainingRun run(new_trainer(config), folder / "run", &fs);
      for (int i = 0; i < 4; ++i) run.advance();
      while (run.trainer().loop().step < 7) run.advance();
      armed = true, first = static_cast<int>(fs.calls.size());
      const std::string message = message_of<DataError>([&] { run.save(); });
      const std::string failed = fs.calls[static_cast<std::size_t>(first + failing)];
      EXPECT_NE(message.find(folder.path()), std::string::npos) << message;
      EXPECT_NE(message.find(handgrad::files::describe_errno(error)), std::string::npos) << failed << ": " << message;
      const FoundCheckpoint found = find_checkpoint(folder / "run");
      EXPECT_TRUE(found.checkpoint->loop().step == 4 || found.checkpoint->loop().step == 7) << failed;
      EXPECT_EQ(found.passed_over, Names{});
      for (const std::string& name : checkpoints_in(folder / "run")) EXPECT_FALSE(name.ends_with(".tmp")) << failed;
      EXPECT_NO_THROW(Checkpoint::load(folder / "run/checkpoints/latest.h5")) << failed;
      EXPECT_NO_THROW(Checkpoint::load(folder / "run/checkpoints/best.h5")) << failed;
      // When the disk works again, the run continues.
      armed = false;
      finish(run);
      EXPECT_EQ(find_checkpoint(folder / "run").checkpoint->loop().step, 12);
      if (calls == 1) {  // counts the operations of a save without failures
        const TemporaryFolder other;
        FailingFiles counting;
        TrainingRun counted(new_trainer(config), other / "run", &counting);
        while (counted.trainer().loop().step < 7) counted.advance();
        const std::size_t before = counting.calls.size();
        counted.save();
        calls = static_cast<int>(counting.calls.size() - before);
        EXPECT_GT(calls, 8);
      }
    }
  }
}

}  // namespace
}  // namespace handgrad
