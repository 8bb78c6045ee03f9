#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "handgrad/config/fields.h"
#include "support/command_line.h"
#include "support/trailer_forger.h"

// config explain, config check, and the CONFIG arguments of other commands.

namespace handgrad {
namespace {

using test::CommandLine;
using test::Outcome;

class ConfigCommand : public testing::Test {
 protected:
  void SetUp() override { line.prepare(); }
  std::string output(const std::vector<std::string>& arguments) const {
    const Outcome outcome = line.run(arguments);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_EQ(outcome.err, "");
    return outcome.out;
  }
  CommandLine line;
};

TEST_F(ConfigCommand, explains_keys_and_tables) {
  const std::string explained = output({"config", "explain"});
  for (const config::Field& field : config::fields()) {
    EXPECT_NE(explained.find("  " + std::string(field.name()) + " = "), std::string::npos) << field.key;
  }
  const std::string one = output({"config", "explain", "train.steps"}), table = output({"config", "explain", "train"});
  EXPECT_EQ(one.substr(0, 15), "[train]\n  steps");
  EXPECT_EQ(std::count(one.begin(), one.end(), '\n'), 4);
  EXPECT_NE(table.find("  seed = "), std::string::npos);
  EXPECT_EQ(table.find("[model]"), std::string::npos);
}

// Finds a key by its last name, by its name in another program, and by a word of its description.
TEST_F(ConfigCommand, explains_what_is_called_otherwise) {
  const std::string lr = output({"config", "explain", "optimizer.lr"});
  for (const char* name : {"lr", "learning_rate", "max_lr"}) EXPECT_EQ(output({"config", "explain", name}), lr);
  EXPECT_EQ(output({"config", "explain", "max_iters"}), output({"config", "explain", "train.steps"}));
  const std::string every = output({"config", "explain", "every"});
  for (const char* table : {"[eval]", "[checkpoint]", "[log]", "[sample]"}) {
    EXPECT_NE(every.find(table), std::string::npos) << table;
  }
  const std::string clipping = output({"config", "explain", "Global norm"});
  EXPECT_EQ(clipping.find("No key has the name \"Global norm\". Keys that mention it:\n\n[optimizer]\n  grad_clip"),
            0u);
  EXPECT_EQ(line.run({"config", "explain", "bogus"}).err,
            "error: there is no key or table \"bogus\"; there are data, tokenizer, model, train, optimizer, schedule, "
            "eval, checkpoint, log, sample\n");
  EXPECT_EQ(line.run({"config", "explian"}).err,
            "error: config: explain, or check FILE; got \"explian\"; did you mean "
            "explain?\n");
}

TEST_F(ConfigCommand, check_tells_what_a_run_takes) {
  const std::string checked = output({"config", "check", "tiny.toml", "--set", "train.steps=77"});
  EXPECT_EQ(checked.find("# 32 tokens per step (4 x 1 sequences of 8), 2464 tokens in 77 steps\n"
                         "# data.files: 1 file, 400 bytes\n"
                         "# 2480 parameters, about "),
            0u)
      << checked;
  EXPECT_NE(checked.find("steps = 77\n"), std::string::npos);
  line.write("again.toml", checked);
  EXPECT_EQ(output({"config", "check", "again.toml"}), checked);
  // Memory grows with every block.
  const std::string deep = output({"config", "check", "tiny.toml", "--set", "model.n_layers=5"});
  const Outcome trained = line.run({"train", "tiny.toml", "--set", "model.n_layers=5"});
  const std::string parameters = trained.out.substr(11, trained.out.find(" parameters") - 11);
  EXPECT_NE(deep.find("# " + parameters + " parameters, about "), std::string::npos) << deep << trained.out;
  // A config is checked even if its text is missing.
  const std::string alone = output({"config", "check", "tiny.toml", "--set", "data.files=[\"none.txt\"]"});
  EXPECT_NE(alone.find("# parameters and memory are not known: no such file"), std::string::npos) << alone;
}

TEST_F(ConfigCommand, check_says_all_that_is_wrong) {
  line.write("bad.toml", "[model]\nd_model = \"64\"\nn_layer = 3\n[train]\nsteps = 0\n");
  const Outcome outcome = line.run({"config", "check", "bad.toml", "--set", "a=1", "--set", "optimizer.lr=x"});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_EQ(outcome.out, "");
  EXPECT_EQ(outcome.err,
            "error: bad.toml:2: model.d_model: expected an integer from 1 to 65536, got \"64\"; write 64\n"
            "error: bad.toml:3: model.n_layer: unknown key; did you mean model.n_layers?\n"
            "error: bad.toml:5: train.steps: expected an integer from 1 to 1000000000, got 0\n"
            "error: --set a: unknown key; there are data, tokenizer, model, train, optimizer, schedule, eval, "
            "checkpoint, log, sample\n"
            "error: --set optimizer.lr: expected a number from 0 to 1000000000, got \"x\"\n");
  EXPECT_EQ(line.run({"config", "check", "tiny.toml", "--set", "model.n_heads=3", "--set", "optimizer.min_lr=1"}).err,
            "error: tiny.toml: model.n_heads 3 must divide model.d_model 16: the remainder is 1\n"
            "error: tiny.toml: model.position \"rope\" needs an even head width, got 5: model.d_model 16 "
            "/ model.n_heads 3\n"
            "error: tiny.toml: optimizer.min_lr 1 is above optimizer.lr 0.001; a tenth of it is usual: "
            "optimizer.min_lr=0.0001\n");
}

TEST_F(ConfigCommand, a_run_folder_stands_for_its_config) {
  ASSERT_EQ(line.run({"train", "tiny.toml", "--out", "run"}).exit_code, 0);
  EXPECT_EQ(output({"config", "check", "run"}), output({"config", "check", "run/config.toml"}));
  EXPECT_NE(output({"audit", "run/", "--entries", "1", "--sequences", "1", "--quiet"}).find("proven"),
            std::string::npos);
  EXPECT_NE(output({"bench", "run", "--steps", "3"}).find("2480 parameters, 1 thread, "), std::string::npos);
  std::filesystem::create_directory(line / "empty");
  EXPECT_EQ(line.run({"audit", "empty"}).err, "error: empty: is a directory without config.toml; name a config file\n");
  EXPECT_EQ(line.run({"bench", "."}).err,
            "error: .: is a directory without config.toml; name a config file, one of tiny.toml\n");
}

// --json=FILE does not change the kind of file that FILE is. --json FILE is refused, and the message shows the right
// form.
TEST_F(ConfigCommand, json_goes_where_it_is_sent) {
  ASSERT_EQ(line.run({"train", "tiny.toml", "--out", "run"}).exit_code, 0);
  const std::string json = output({"eval", "run", "--json"});
  std::filesystem::create_symlink("target.json", line / "link.json");
  output({"eval", "run", "--json=link.json"});
  EXPECT_EQ(line.read("target.json"), json);
  EXPECT_TRUE(std::filesystem::is_symlink(line / "link.json"));
  ASSERT_EQ(::mkfifo((line / "pipe").c_str(), 0600), 0);
  const int reader = ::open((line / "pipe").c_str(), O_RDONLY | O_NONBLOCK);
  output({"eval", "run", "--json=pipe"});
  std::string received(4096, '\0');
  received.resize(static_cast<std::size_t>(std::max<ssize_t>(0, ::read(reader, received.data(), received.size()))));
  ::close(reader);
  EXPECT_EQ(received, json);
  EXPECT_TRUE(std::filesystem::is_fifo(line / "pipe"));
  for (const std::vector<std::string>& arguments : std::vector<std::vector<std::string>>{
           {"eval", "run", "--json", "out.json"}, {"eval", "--json", "out.json", "run"}}) {
    const Outcome outcome = line.run(arguments);
    EXPECT_EQ(outcome.exit_code, 2);
    EXPECT_NE(outcome.err.find("; the file for --json follows an equals sign: --json=out.json; see"), std::string::npos)
        << outcome.err;
  }
}

TEST_F(ConfigCommand, json_that_cannot_be_written_is_an_error_before_the_work) {
  for (const std::string command : {"audit", "bench"}) {
    const Outcome none = line.run({command, "tiny.toml", "--json=none/out.json"});
    EXPECT_EQ(none.exit_code, 4);
    EXPECT_EQ(none.out, "");
    EXPECT_EQ(none.err, "error: cannot write none/out.json: no such file or directory\n");
    EXPECT_EQ(line.run({command, "tiny.toml", "--json=."}).err, "error: cannot write .: is a directory\n");
  }
}

TEST_F(ConfigCommand, sealing_a_link_keeps_it) {
  ASSERT_EQ(line.run({"train", "tiny.toml", "--out", "run"}).exit_code, 0);
  const std::string file = line.read("run/checkpoints/step-00000006.h5");
  const auto* bytes = reinterpret_cast<const std::byte*>(file.data());
  line.write("unsealed.h5", file.substr(0, test::image_bytes({bytes, bytes + file.size()})));
  std::filesystem::create_symlink("unsealed.h5", line / "link.h5");
  output({"inspect", "link.h5", "--reseal"});
  EXPECT_TRUE(std::filesystem::is_symlink(line / "link.h5"));
  EXPECT_EQ(line.run({"inspect", "unsealed.h5", "--verify"}).exit_code, 0);
}

}  // namespace
}  // namespace handgrad
