#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <functional>

#include "handgrad/files/durable_write.h"
#include "support/checkpoint_editor.h"
#include "support/command_line.h"
#include "support/trailer_forger.h"

// Every wrong input of a user gives one line on standard error with the cause, an exit code, and no changed file.

namespace handgrad {
namespace {

using test::CommandLine;
using test::Launch;
using test::Outcome;

struct Case {
  std::vector<std::string> arguments;
  int exit_code;
  std::string first_line;  // without "error: "; DIR is replaced by the temporary folder
  std::function<void(const CommandLine&)> prepare = {};
};

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (std::size_t at; (at = text.find(from)) != std::string::npos;) text.replace(at, from.size(), to);
  return text;
}

void expect(const CommandLine& line, const Case& c) {
  SCOPED_TRACE(testing::PrintToString(c.arguments));
  if (c.prepare) c.prepare(line);
  const std::string before = line.everything();
  const Outcome outcome = line.run(c.arguments);
  EXPECT_EQ(outcome.exit_code, c.exit_code);
  EXPECT_EQ(outcome.err, "error: " + replaced(c.first_line, "DIR", line.path()) + "\n");
  EXPECT_EQ(line.everything(), before) << "something was touched";
}

void expect_all(const std::vector<Case>& cases) {
  for (const Case& c : cases) {
    CommandLine line;
    line.prepare();
    expect(line, c);
  }
}

// A case of `train tiny.toml --set KEY=VALUE`.
Case set(const std::string& key_and_value, int exit_code, const std::string& first_line) {
  return {{"train", "tiny.toml", "--set", key_and_value}, exit_code, first_line};
}

// A case of `train` with a config of these lines.
Case config(const std::string& text, const std::string& first_line) {
  return {{"train", "c.toml"}, 2, first_line, [text](const CommandLine& line) { line.write("c.toml", text); }};
}

TEST(BadInput, usage) {
  expect_all({
      {{"trian"}, 2, "there is no command \"trian\"; did you mean train?; see handgrad --help"},
      {{"train"}, 2, "train: a CONFIG is needed (or --resume RUN); see handgrad train --help"},
      {{"generate"}, 2, "generate: a CHECKPOINT is needed; see handgrad generate --help"},
      {{"eval"}, 2, "eval: a CHECKPOINT is needed; see handgrad eval --help"},
      {{"inspect"}, 2, "inspect: a FILE is needed; see handgrad inspect --help"},
      {{"bench"}, 2, "bench: a CONFIG is needed; see handgrad bench --help"},
      {{"config"}, 2, "config: explain, or check FILE; see handgrad config --help"},
      {{"config", "check"}, 2, "config check: a FILE is needed"},
      {{"config", "explain", "train.stepps"}, 2, "there is no key \"train.stepps\"; did you mean train.steps?"},
      {{"config", "explain", "modle"}, 2, "there is no key or table \"modle\"; did you mean [model]?"},
      {{"config", "explain", "--markdown", "train"}, 2, "config explain --markdown: unexpected argument \"train\""},
      {{"config", "chekc"}, 2, "config: explain, or check FILE; got \"chekc\"; did you mean check?"},
      {{"train", "tiny.toml", "more.toml"}, 2, "train: unexpected argument \"more.toml\"; see handgrad train --help"},
      {{"train", "tiny.toml", "--sett", "a"},
       2,
       "train: there is no option --sett; did you mean --set?; see handgrad train --help"},
      {{"train", "tiny.toml", "--set"}, 2, "train: --set: a value is expected; see handgrad train --help"},
      {{"train", "tiny.toml", "--threads", "two"}, 2, "--threads: expected an integer from 1 to 1024, got \"two\""},
      {{"train", "tiny.toml", "--threads", "0"}, 2, "--threads: expected an integer from 1 to 1024, got \"0\""},
      {{"train", "--resume", "auto"}, 2, "train: a CONFIG is needed (or --resume RUN); see handgrad train --help"},
      {{"train", "tiny.toml", "--resume", "auto", "--overwrite"},
       2,
       "train: --resume continues a run; --init and --overwrite start a new one"},
      {{"bench", "tiny.toml"},
       2,
       "tiny.toml: model.vocab_size: bench has no tokenizer, so it must be given, for example --set "
       "model.vocab_size=256"},
      {{"bench", "tiny.toml", "--steps", "2"}, 2, "--steps: expected an integer from 3 to 1000000, got \"2\""},
  });
  CommandLine line;
  EXPECT_EQ(line.run({}).exit_code, 2);
  EXPECT_NE(line.run({}).err.find("usage: handgrad COMMAND"), std::string::npos);
}

TEST(BadInput, configs) {
  expect_all({
      {{"train", "none.toml"}, 2, "cannot read none.toml: no such file or directory"},
      {{"train", "."}, 2, "train: .: is a directory; CONFIG must be a file"},
      config("[data\nfiles = 1", "c.toml:1: malformed TOML: expected ']', saw '\\n'"),
      config("[train]\nsteps = 5\n[modle]\nn_layers = 2\n", "c.toml:3: [modle]: unknown table; did you mean [model]?"),
      config("[model]\nn_layer = 2\n", "c.toml:2: model.n_layer: unknown key; did you mean model.n_layers?"),
      config("[optimizer]\nlearning_rat = 0.1\n",
             "c.toml:2: optimizer.learning_rat: unknown key; did you mean optimizer.lr?"),
      config("[model]\nn_layers = 2.0\n",
             "c.toml:2: model.n_layers: expected an integer from 1 to 1024, got 2.0; write 2"),
      config("[model]\nn_layers = \"2\"\n",
             "c.toml:2: model.n_layers: expected an integer from 1 to 1024, got \"2\"; write 2"),
      config("[train]\nbatch_size = 0\n", "c.toml:2: train.batch_size: expected an integer from 1 to 65536, got 0"),
      config("[train]\nsteps = 10\n", "data.files: at least one file or folder is needed, got none"),
      set("model.dropout=1.5", 2, "--set model.dropout: expected a number of at least 0 and below 1, got 1.5"),
      set("model.n_leyers=1", 2, "--set model.n_leyers: unknown key; did you mean model.n_layers?"),
      set("optimizer.lr=nan", 2, "--set optimizer.lr: expected a number from 0 to 1000000000, got nan"),
      set("model.d_model", 2, "--set model.d_model: expected KEY=VALUE"),
      set("model.d_model=15", 2, "tiny.toml: model.n_heads 2 must divide model.d_model 15: the remainder is 1"),
      set("model.n_heads=16", 2,
          "tiny.toml: model.position \"rope\" needs an even head width, got 1: model.d_model 16 / "
          "model.n_heads 16"),
      set("model.n_kv_heads=3", 2, "tiny.toml: model.n_kv_heads 3 is more than model.n_heads 2"),
      {{"train", "tiny.toml", "--set", "model.n_heads=8", "--set", "model.n_kv_heads=3"},
       2,
       "tiny.toml: model.n_kv_heads 3 does not divide model.n_heads 8: every key head needs the same number of query "
       "heads"},
      set("model.vocab_size=10", 2, "model.vocab_size: the char tokenizer has 16 tokens, got 10; leave the key out"),
  });
}

TEST(BadInput, texts) {
  const auto files = [](const std::string& name, const std::string& content) {
    return [=](const CommandLine& line) { line.write(name, content); };
  };
  expect_all({
      set("data.files=[\"none.txt\"]", 4,
          "no such file or folder: DIR/none.txt; --set data.files='[\"FILE\"]' names another"),
      {{"train", "tiny.toml", "--set", "data.files=[\"a.txt\"]"}, 4, "empty file: DIR/a.txt", files("a.txt", "")},
      {{"train", "tiny.toml", "--set", "data.files=[\"texts\"]"},
       4,
       "no text in folder DIR/texts: no file below it ends in .txt, .md or .text",
       files("texts/a.csv", "a,b")},
      {{"train", "tiny.toml", "--set", "data.files=[\"a.txt\"]"},
       4,
       "training part too short: it has 4 tokens, but a context of 8 needs at least one more than that; use a longer "
       "text or a smaller context",
       files("a.txt", "abcde")},
      set("model.context=40", 4,
          "validation part too short: it has 40 tokens, but a context of 40 needs at least one more than that; use a "
          "longer text or a smaller context"),
      {{"train", "tiny.toml", "--set", "data.files=[\"a.txt\"]"},
       4,
       "DIR/a.txt: invalid UTF-8 at byte offset 3: byte 0xFF cannot begin a character",
       files("a.txt",
             "abc\xff"
             "def")},
  });
}

TEST(BadInput, folders) {
  CommandLine line;
  line.prepare();
  line.write("full/notes.txt", "mine");
  expect(line, {{"train", "tiny.toml", "--out", "text.txt"}, 4, "text.txt: is not a directory"});
  expect(line, {{"train", "tiny.toml", "--out", "full"},
                4,
                "full: contains other files, but no run; choose another folder with --out"});
  ASSERT_EQ(line.run({"train", "tiny.toml"}).exit_code, 0);
  expect(
      line,
      {{"train", "tiny.toml"},
       4,
       "runs/tiny: contains a run; --resume auto continues it, --out FOLDER starts another, --overwrite replaces it"});
  expect(line, {{"train", "tiny.toml", "--resume", "auto", "--set", "model.n_heads=4"},
                2,
                "cannot resume: model.n_heads is 2 in the stored run, 4 requested; model.n_kv_heads is 2 in the stored "
                "run, 4 requested"});
  expect(line, {{"train", "--resume", "runs/tiny", "--set", "train.steps=3"},
                2,
                "cannot resume: train.steps 3 requested, but 6 are completed"});
}

TEST(BadInput, generating) {
  CommandLine line;
  line.prepare();
  ASSERT_EQ(line.run({"train", "tiny.toml"}).exit_code, 0);
  const auto generate = [](std::vector<std::string> more, int code, const std::string& message) {
    std::vector<std::string> arguments = {"generate", "runs/tiny"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return Case{arguments, code, message};
  };
  for (const Case& c : {
           generate(
               {"--prompt", "the Zoo"}, 4,
               "prompt: a character is not in the vocabulary of 16 characters: 'Z' (U+005A) once (line 1, character "
               "5); remove them, or train a model with tokenizer.kind=byte, which has no unknown characters"),
           generate({"--prompt", "\xff"}, 4,
                    "prompt: invalid UTF-8 at byte offset 0: byte 0xFF cannot begin a character"),
           generate({"--prompt", ""}, 4, "prompt: must have at least one token, got none"),
           generate({"--prompt-file", "none"}, 4, "cannot read none: no such file or directory"),
           generate({"--prompt", "a", "--prompt-file", "-"}, 2,
                    "generate: --prompt and --prompt-file exclude each other"),
       }) {
    expect(line, c);
  }
}

TEST(BadInput, checkpoints) {
  CommandLine line;
  line.prepare();
  ASSERT_EQ(line.run({"train", "tiny.toml", "--set", "checkpoint.keep=1"}).exit_code, 0);
  const std::string good = line.read("runs/tiny/checkpoints/step-00000006.h5");
  const std::size_t image = test::image_bytes(
      {reinterpret_cast<const std::byte*>(good.data()), reinterpret_cast<const std::byte*>(good.data() + good.size())});
  std::string flipped = good, newer = good;
  flipped[flipped.find("n_layers")] ^= 1;  // in the stored config
  {
    test::Bytes bytes(reinterpret_cast<const std::byte*>(good.data()),
                      reinterpret_cast<const std::byte*>(good.data() + good.size()));
    test::put_at<std::uint32_t>(bytes, bytes.size() - 56, 3);
    test::seal_again(bytes);
    newer.assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
  line.write("empty.h5", "");
  line.write("text.h5", "this is no HDF5 file, although it is long enough to be one");
  line.write("cut.h5", good.substr(0, good.size() / 2));
  line.write("flipped.h5", flipped);
  line.write("unsealed.h5", good.substr(0, image));
  line.write("newer.h5", newer);
  line.write("nan.h5", good);
  test::edit_checkpoint(line / "nan.h5",
                        [](test::CheckpointEditor& e) { e.floats("/model/embedding/weight")[5] = NAN; });
  std::filesystem::create_directory(line / "nothing");
  for (const auto& [file, reason] : std::vector<std::pair<std::string, std::string>>{
           {"none.h5", "cannot read none.h5: no such file or directory"},
           {"nothing", "nothing: contains no checkpoint"},
           {"empty.h5", "cannot load empty.h5: it is empty"},
           {"text.h5", "cannot load text.h5: it is not an HDF5 file"},
           {"cut.h5", "cannot load cut.h5: it is truncated to " + std::to_string(good.size() / 2) + " bytes"},
           {"flipped.h5", "cannot load flipped.h5: it is damaged in /config"},
           {"unsealed.h5",
            "cannot load unsealed.h5: it has no seal: another program wrote it, or it was cut; `handgrad "
            "inspect --reseal` seals it if it is sound"},
           {"newer.h5", "cannot load newer.h5: it was written by a newer handgrad: format 3, this one reads up to 2"},
           {"nan.h5", "cannot load nan.h5: /model/embedding/weight[5] is nan"},
       }) {
    expect(line, {{"generate", file}, 4, reason});
    expect(line, {{"eval", file}, 4, reason});
    expect(line, {{"train", "tiny.toml", "--init", file, "--out", "new"}, 4, reason});
    expect(line, {{"train", "tiny.toml", "--resume", file, "--out", "new"}, 4, reason});
    if (file != "nan.h5" && file != "nothing") expect(line, {{"inspect", file}, 4, reason});
    const Outcome verified = line.run({"inspect", file, "--verify"});
    EXPECT_EQ(verified.exit_code, 1);
    EXPECT_EQ(verified.out, reason + "\n");
  }
}

// Runs as an ordinary user, since root may read and write everything.
TEST(BadInput, permissions) {
  CommandLine line;
  line.prepare();
  Launch user;
  user.ordinary_user = true;
  std::filesystem::permissions(line.path(), std::filesystem::perms::all);
  if (line.run({"--version"}, user).exit_code != 0)
    GTEST_SKIP() << "the program cannot be run as an ordinary user here";
  line.write("secret.toml", line.read("tiny.toml"));
  line.write("secret.txt", line.read("text.txt"));
  for (const char* name : {"secret.toml", "secret.txt"}) ::chmod((line / name).c_str(), 0);
  const auto refused = [&](const std::vector<std::string>& arguments, int code, const std::string& message) {
    const std::string before = line.everything();
    const Outcome outcome = line.run(arguments, user);
    EXPECT_EQ(outcome.exit_code, code);
    EXPECT_EQ(outcome.err, "error: " + message + "\n");
    EXPECT_EQ(line.everything(), before);
  };
  refused({"train", "secret.toml"}, 2, "cannot read secret.toml: permission denied");
  refused({"train", "tiny.toml", "--set", "data.files=[\"secret.txt\"]"}, 4,
          "cannot read " + line / "secret.txt" + ": permission denied");
  line.write("texts/good.txt", line.read("text.txt"));
  line.write("texts/secret.txt", "secret");
  ::chmod((line / "texts/secret.txt").c_str(), 0);
  refused({"train", "tiny.toml", "--set", "data.files=[\"texts\"]"}, 4,
          "cannot read " + line / "texts/secret.txt" + ": permission denied");

  std::filesystem::create_directory(line / "closed");
  ::chmod((line / "closed").c_str(), 0555);
  refused({"train", "tiny.toml", "--out", "closed/run"}, 4, "cannot make folder closed/run: permission denied");

  // Not writable from the first save on.
  std::filesystem::create_directories(line / "run/checkpoints");
  line.write("run/lock", "");
  ::chmod((line / "run/lock").c_str(), 0666);
  ::chmod((line / "run").c_str(), 0777);
  ::chmod((line / "run/checkpoints").c_str(), 0555);
  const Outcome outcome = line.run({"train", "tiny.toml", "--out", "run", "--resume", "auto"}, user);
  EXPECT_EQ(outcome.exit_code, 4);
  EXPECT_EQ(outcome.err, "error: cannot write run/checkpoints/step-00000003.h5: permission denied\n");
}

TEST(BadInput, no_room_at_a_save) {
  CommandLine line;
  line.prepare();
  ASSERT_EQ(line.run({"train", "tiny.toml", "--set", "checkpoint.keep=1"}).exit_code, 0);
  Launch small;
  small.largest_file_bytes = 16384;
  const Outcome outcome = line.run({"train", "--resume", "runs/tiny", "--set", "train.steps=9"}, small);
  EXPECT_EQ(outcome.exit_code, 4);
  EXPECT_EQ(outcome.err, "error: cannot write runs/tiny/checkpoints/step-00000009.h5: file too large\n");
  EXPECT_EQ(line.run({"inspect", "runs/tiny", "--verify"}).exit_code, 0);
  EXPECT_EQ(files::list_folder(posix_files(), line / "runs/tiny/checkpoints"),
            (std::vector<std::string>{"best.h5", "latest.h5", "step-00000006.h5"}));
  EXPECT_EQ(line.run({"train", "--resume", "runs/tiny", "--set", "train.steps=9"}).exit_code, 0);
}

}  // namespace
}  // namespace handgrad
