#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <regex>
#include <thread>

#include "handgrad/checkpoint/run_folder.h"
#include "support/command_line.h"

namespace handgrad {
namespace {

using test::CommandLine;
using test::Outcome;

std::string checkpoint(const std::string& run, Index step) { return run + "/checkpoints/" + checkpoint_name(step); }

TEST(TrainCommand, trains_and_says_what_it_does) {
  CommandLine line;
  line.prepare();
  const Outcome outcome = line.run({"train", "tiny.toml", "--set", "sample.every=6", "--set", "sample.prompt=the"});
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_EQ(outcome.err, "");
  EXPECT_EQ(outcome.out.find('\r'), std::string::npos);
  EXPECT_EQ(outcome.out.find('\033'), std::string::npos);
  EXPECT_EQ(outcome.out.find("runs/tiny: 2480 parameters, vocabulary 16 (char), 360 training and 40 validation tokens\n"
                             "1 thread, "),
            0u)
      << outcome.out;
  for (const char* text : {"\nstep 1  loss ", "\nstep 6  loss ", "\nstep 3  validation loss ", "\nsaved step 3\n",
                           "\nsaved step 6\n", "\nstep 6  sample: "}) {
    EXPECT_NE(outcome.out.find(text), std::string::npos) << text;
  }
  EXPECT_EQ(outcome.last_line().find("finished at step 6; best validation loss "), 0u);
  EXPECT_EQ(line.run({"train", "tiny.toml", "--out", "quiet", "--quiet"}).out, "");
}

TEST(TrainCommand, resumes_in_every_way) {
  CommandLine line;
  line.prepare();
  const auto last = [&](const std::vector<std::string>& arguments) {
    const Outcome outcome = line.run(arguments);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    return outcome.last_line();
  };
  last({"train", "tiny.toml", "--resume", "auto"});  // there is no run yet: it starts at step 0
  EXPECT_EQ(last({"train", "tiny.toml", "--resume", "auto"}),
            "runs/tiny: finished at step 6; --set train.steps=N extends it");
  EXPECT_EQ(last({"train", "--resume", "runs/tiny"}), "runs/tiny: finished at step 6; --set train.steps=N extends it");
  EXPECT_EQ(last({"train", "--resume", "runs/tiny", "--set", "train.steps=8"}).find("finished at step 8"), 0u);
  EXPECT_EQ(last({"train", "--resume", "runs/tiny/checkpoints", "--set", "train.steps=9"}).find("finished at step 9"),
            0u);
  EXPECT_EQ(last({"train", "--resume", "runs/tiny/checkpoints/latest.h5", "--set", "train.steps=10"})
                .find("finished at step 10"),
            0u);
  EXPECT_EQ(last({"train", "runs/tiny/config.toml", "--resume", "auto"}),
            "runs/tiny: finished at step 10; --set train.steps=N extends it");
  EXPECT_EQ(last({"train", "tiny.toml", "--overwrite"}).find("finished at step 6"), 0u);
  EXPECT_FALSE(line.exists(checkpoint("runs/tiny", 10)));
}

TEST(TrainCommand, resumed_is_never_stopped_whatever_the_threads) {
  CommandLine line;
  line.prepare("[checkpoint]\nevery = 2\nkeep = 9\n");
  ASSERT_EQ(line.run({"train", "tiny.toml", "--out", "a"}).exit_code, 0);
  for (const char* threads : {"1", "2"}) {
    const std::string out = std::string("b") + threads;
    ASSERT_EQ(line.run({"train", "--resume", checkpoint("a", 2), "--out", out, "--threads", threads}).exit_code, 0);
    EXPECT_EQ(line.read(checkpoint(out, 6)), line.read(checkpoint("a", 6)));
  }
  // A checkpoint file can be used without its run folder.
  line.write("alone.h5", line.read(checkpoint("a", 2)));
  ASSERT_EQ(line.run({"train", "--resume", "alone.h5", "--out", "c"}).exit_code, 0);
  EXPECT_EQ(line.read(checkpoint("c", 6)), line.read(checkpoint("a", 6)));
}

TEST(TrainCommand, goes_on_from_what_is_whole_and_begins_nothing_anew_over_what_is_not) {
  CommandLine line;
  line.prepare();
  ASSERT_EQ(line.run({"train", "tiny.toml"}).exit_code, 0);
  const std::string six = checkpoint("runs/tiny", 6), three = checkpoint("runs/tiny", 3), good = line.read(six);
  line.write(six, good.substr(0, 1000));
  Outcome outcome = line.run({"train", "tiny.toml", "--resume", "auto"});
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_EQ(outcome.err,
            "note: passed over " + six + ": it is truncated to 1000 bytes\nnote: renamed to " + six + ".set-aside\n");
  EXPECT_NE(outcome.out.find("\ncontinuing after step 3\n"), std::string::npos);
  EXPECT_TRUE(line.read(six) == good);
  EXPECT_TRUE(line.read(six + ".set-aside") == good.substr(0, 1000)) << "what cannot be read is kept";
  line.write(six, "");
  line.write(three, "");
  const std::string before = line.everything();
  outcome = line.run({"train", "tiny.toml", "--resume", "auto"});
  EXPECT_EQ(outcome.exit_code, 4);
  EXPECT_NE(
      outcome.err.find("error: runs/tiny: none of its checkpoints can be read; handgrad inspect --reseal FILE "
                       "accepts one that another program has edited; train --overwrite removes them and starts a new "
                       "run\n"),
      std::string::npos)
      << outcome.err;
  EXPECT_TRUE(line.everything() == before);
  EXPECT_EQ(line.run({"train", "tiny.toml", "--overwrite"}).exit_code, 0) << "when asked";
  EXPECT_TRUE(line.read(six) == good);
}

// A run's only checkpoint, under another name, still belongs to the run: a new run would erase its log.
TEST(TrainCommand, begins_nothing_anew_beside_a_renamed_checkpoint) {
  CommandLine line;
  line.prepare();
  ASSERT_EQ(line.run({"train", "tiny.toml"}).exit_code, 0);
  const std::string folder = "runs/tiny/checkpoints/";
  std::filesystem::rename(line / checkpoint("runs/tiny", 6), line / (folder + "mine.h5"));
  for (const char* name : {"step-00000003.h5", "best.h5", "latest.h5"}) std::filesystem::remove(line / (folder + name));
  const std::string before = line.everything();
  Outcome outcome = line.run({"train", "tiny.toml"});
  EXPECT_EQ(outcome.exit_code, 4);
  EXPECT_EQ(outcome.err,
            "error: runs/tiny: contains a run; --resume auto continues it, --out FOLDER starts another, --overwrite "
            "replaces it\n");
  EXPECT_TRUE(line.everything() == before);
  outcome = line.run({"train", "tiny.toml", "--resume", "auto", "--set", "train.steps=7"});
  EXPECT_NE(outcome.out.find("\ncontinuing after step 6\n"), std::string::npos) << outcome.out;
}

// Files that file managers leave in folders are not checkpoints to be recovered.
TEST(TrainCommand, begins_beside_other_files_where_nothing_was_saved) {
  CommandLine line;
  line.prepare();
  line.write("runs/tiny/lock", "");
  line.write("runs/tiny/checkpoints/.DS_Store", "x");
  for (const std::vector<std::string>& more : {std::vector<std::string>{"--resume", "auto"}, {}}) {
    std::vector<std::string> words = {"train", "tiny.toml"};
    words.insert(words.end(), more.begin(), more.end());
    const Outcome outcome = line.run(words);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    std::filesystem::remove_all(line / "runs/tiny");
    line.write("runs/tiny/lock", "");
    line.write("runs/tiny/checkpoints/.DS_Store", "x");
  }
}

TEST(TrainCommand, fine_tunes) {
  CommandLine line;
  line.prepare();
  ASSERT_EQ(line.run({"train", "tiny.toml"}).exit_code, 0);
  line.write("other.txt", std::string(100, 'a') + " fox saw the hen." + std::string(100, 'h'));
  line.write("fine.toml", "[data]\nfiles = [\"other.txt\"]\n[train]\nsteps = 4\n");
  Outcome outcome = line.run({"train", "fine.toml", "--init", "runs/tiny"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(outcome.out.find("runs/fine: 2480 parameters, vocabulary 16 (char)"), 0u);
  EXPECT_EQ(line.run({"train", "--resume", "runs/fine"}).exit_code, 0);
  EXPECT_EQ(
      line.run({"train", "fine.toml", "--init", "runs/tiny", "--out", "b", "--set", "model.dropout=0.5"}).exit_code, 0);

  outcome = line.run({"train", "fine.toml", "--init", "runs/tiny", "--out", "c", "--set", "model.n_heads=4"});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_EQ(
      outcome.first_error(),
      "error: runs/tiny/checkpoints/step-00000006.h5: model.n_heads is 2 there, 4 in the config; leave the key out "
      "to use the checkpoint's value");
  line.write("other.txt", "the Fox");
  outcome = line.run({"train", "fine.toml", "--init", "runs/tiny", "--out", "c"});
  EXPECT_EQ(outcome.exit_code, 4);
  EXPECT_EQ(outcome.first_error(),
            "error: data.files: a character is not in the vocabulary of 16 characters: 'F' (U+0046) once (" +
                line / "other.txt" +
                ", line 1, character 5); remove them, or train a model with tokenizer.kind=byte, which has no "
                "unknown characters");
  EXPECT_FALSE(line.exists("c"));
}

TEST(TrainCommand, a_loss_that_is_not_finite_ends_it) {
  CommandLine line;
  line.prepare("[checkpoint]\nevery = 1\n[optimizer]\nlr = 1e6\ngrad_clip = 0\n");
  const Outcome outcome = line.run({"train", "tiny.toml", "--set", "train.steps=1000"});
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_EQ(outcome.err.find("error: step "), 0u) << outcome.err;
  EXPECT_NE(outcome.err.find("; the update was not applied"), std::string::npos) << outcome.err;
  EXPECT_EQ(line.run({"inspect", "runs/tiny", "--verify"}).exit_code, 0);
}

// The tokens per second are right again after a pause, as after Ctrl-Z.
TEST(TrainCommand, rates_recover_after_a_pause) {
  CommandLine line;
  line.prepare();
  test::Process run = line.start({"train", "tiny.toml", "--set", "train.steps=100000000", "--set", "log.every=1000",
                                  "--set", "eval.every=100000000", "--set", "checkpoint.every=100000000"});
  ASSERT_TRUE(run.wait_for("step 4000 "));
  run.send(SIGSTOP);
  std::this_thread::sleep_for(std::chrono::seconds(2));
  run.send(SIGCONT);
  ASSERT_TRUE(run.wait_for("step 8000 "));
  run.send(SIGINT);
  const std::string out = run.wait().out;
  double slowest = 1e99, fastest = 0.0;
  const std::regex row(R"re(\nstep \d+000  loss .*  (\d+) tokens/s)re");
  for (std::sregex_iterator i(out.begin(), out.end(), row), end; i != end; ++i) {
    slowest = std::min(slowest, std::stod((*i)[1]));
    fastest = std::max(fastest, std::stod((*i)[1]));
  }
  EXPECT_GT(slowest, fastest / 4) << out;
}

TEST(TrainCommand, a_full_standard_output_is_an_error) {
  struct stat info {};
  if (::stat("/dev/full", &info) != 0 || !S_ISCHR(info.st_mode)) {
    GTEST_SKIP() << "/dev/full is no device here; TrainCommand.an_output_beyond_its_limit_is_an_error stands in for it";
  }
  CommandLine line;
  line.prepare();
  const std::string command = std::string(HANDGRAD_BINARY) + " train " + line / "tiny.toml" + " --out " + line / "run" +
                              " > /dev/full 2> " + line / "err";
  EXPECT_NE(std::system(command.c_str()), 0);
  EXPECT_EQ(line.read("err").find("error: cannot write to "), 0u) << line.read("err");
}

// The same without a full device: standard output is a file at its size limit.
TEST(TrainCommand, an_output_beyond_its_limit_is_an_error) {
  CommandLine line;
  line.write("out", std::string(4096, '.'));
  const std::string command =
      "ulimit -f 2; " + std::string(HANDGRAD_BINARY) + " config explain >> " + line / "out" + " 2> " + line / "err";
  EXPECT_EQ(WEXITSTATUS(std::system(command.c_str())), 4);
  EXPECT_EQ(line.read("err").find("error: cannot write to "), 0u) << line.read("err");
  EXPECT_EQ(line.read("out").find_first_not_of('.'), std::string::npos);
}

}  // namespace
}  // namespace handgrad
