#include "handgrad/checkpoint/run_folder.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "handgrad/files/file_system.h"
#include "handgrad/train/run.h"
#include "support/temporary_folder.h"
#include "support/training.h"

// Files that people and synchronising programs leave among the checkpoints of a run.

namespace handgrad {
namespace {

namespace stdfs = std::filesystem;
using TrainingRun = Run;  // in a test body, Run is a member of testing::Test

class RunFolder : public test::OneThread {
 protected:
  void SetUp() override {
    Config config = test::tiny_config();
    config.checkpoint.every = 1, config.checkpoint.keep = 3, config.eval.every = 100, config.train.steps = 100;
    TrainingRun run(Trainer(config, test::tiny_source(config)), path());
    for (int i = 0; i < 5; ++i) run.advance();
  }
  std::string path() const { return folder_ / "run"; }
  std::string in(const std::string& name) const { return path() + "/checkpoints/" + name; }
  void copy_as(Index step, const std::string& name) const { stdfs::copy_file(checkpoint_path(path(), step), in(name)); }
  void remove_own() const {
    for (const Index step : checkpoint_steps(path())) stdfs::remove(checkpoint_path(path(), step));
  }

  test::TemporaryFolder folder_;
};

bool mentions(const std::vector<std::string>& lines, const std::string& text) {
  return std::any_of(lines.begin(), lines.end(),
                     [&](const std::string& line) { return line.find(text) != std::string::npos; });
}

TEST_F(RunFolder, foreign_files_never_outrank_the_runs_own) {
  for (const char* name : {"step-250.h5", "step-00000004 (copy).h5", "step-00000004.h5.bak", "._step-00000004.h5",
                           "step-00009999.h5", "step--5.h5", "step-99999999999999999999.h5"}) {
    copy_as(4, name);
  }
  stdfs::create_directory(in("step-00000300.h5"));
  stdfs::create_symlink("nothing.h5", in("step-00000400.h5"));
  ASSERT_EQ(::mkfifo(in("step-00000500.h5").c_str(), 0600), 0);
  const FoundCheckpoint found = find_checkpoint(path());
  EXPECT_EQ(found.checkpoint->loop().step, 5);
  EXPECT_EQ(found.checkpoint->path(), checkpoint_path(path(), 5));
  for (const auto& entry : stdfs::directory_iterator(path() + "/checkpoints")) {
    const std::string name = entry.path().filename().string();
    const bool own =
        name == "latest.h5" || name == "step-00000003.h5" || name == "step-00000004.h5" || name == "step-00000005.h5";
    EXPECT_NE(mentions(found.passed_over, "/" + name + ":"), own) << name;
  }
  EXPECT_TRUE(mentions(found.passed_over, "step-00009999.h5: contains the checkpoint of step 4"));
}

TEST_F(RunFolder, without_one_of_its_own_the_newest_content_is_taken) {
  copy_as(4, "step-00000004 (conflicted copy).h5");
  copy_as(5, "step-00000001.h5");
  std::ofstream(in("step-00009999.h5")) << "no checkpoint";
  copy_as(3, "a.h5");
  for (const Index step : {3, 4, 5}) stdfs::remove(checkpoint_path(path(), step));
  const FoundCheckpoint found = find_checkpoint(path());
  EXPECT_EQ(found.checkpoint->loop().step, 5);
  EXPECT_TRUE(mentions(found.passed_over, "step-00000001.h5: contains the checkpoint of step 5"));
}

TEST_F(RunFolder, training_on_deletes_and_replaces_none_of_them) {
  for (const char* name : {"step-250.h5", "step-00000006.h5", "step-00009999.h5"}) copy_as(4, name);
  stdfs::create_directory(in("step-00000002.h5"));
  stdfs::create_directory(in("step-00000007.h5"));
  const FoundCheckpoint found = find_checkpoint(path());
  const Config config = found.checkpoint->config();
  TrainingRun run(Trainer::resume(*found.checkpoint, config, test::tiny_source(config)), path());
  EXPECT_EQ(run.set_aside().size(), 3u);
  for (int i = 0; i < 5; ++i) run.advance();
  EXPECT_EQ(find_checkpoint(path()).checkpoint->loop().step, 10);
  for (const char* name : {"step-250.h5", "step-00000006.h5.set-aside", "step-00009999.h5.set-aside"}) {
    EXPECT_TRUE(stdfs::is_regular_file(in(name))) << name;
  }
  EXPECT_TRUE(stdfs::is_directory(in("step-00000002.h5")));
  EXPECT_TRUE(stdfs::is_directory(in("step-00000007.h5.set-aside")));
  std::vector<Index> own;
  for (const Index step : checkpoint_steps(path())) {
    if (stdfs::is_regular_file(checkpoint_path(path(), step))) own.push_back(step);
  }
  EXPECT_EQ(own, (std::vector<Index>{10, 9, 8})) << "keep counts the run's own";
}

TEST_F(RunFolder, what_is_set_aside_twice_keeps_both) {
  stdfs::create_directory(in("step-00000007.h5.set-aside"));
  std::ofstream(in("step-00000007.h5")) << "damaged";
  EXPECT_EQ(set_aside_later_checkpoints(posix_files(), path(), 5),
            std::vector<std::string>{in("step-00000007.h5.set-aside-2")});
  EXPECT_TRUE(stdfs::is_directory(in("step-00000007.h5.set-aside")));
}

TEST_F(RunFolder, says_which_files_it_could_not_read) {
  for (const Index step : checkpoint_steps(path())) std::ofstream(checkpoint_path(path(), step)) << "damaged";
  EXPECT_THROW(find_checkpoint(path()), CheckpointError);
  EXPECT_EQ(newest_checkpoint(path()).passed_over.size(), 3u);
  remove_own();
  EXPECT_TRUE(newest_checkpoint(path()).passed_over.empty());
}

}  // namespace
}  // namespace handgrad
