#include <gtest/gtest.h>
#include <hdf5.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "support/command_line.h"

// generate, eval, inspect, bench and config on a run of a few steps.

namespace handgrad {
namespace {

using Json = nlohmann::json;
using test::CommandLine;
using test::Outcome;

class Tools : public testing::Test {
 protected:
  void SetUp() override {
    line.prepare();
    ASSERT_EQ(line.run({"train", "tiny.toml", "--out", "run"}).exit_code, 0);
  }
  std::string output(const std::vector<std::string>& arguments, const std::string& input = "") const {
    test::Launch launch;
    launch.input = input;
    const Outcome outcome = line.run(arguments, launch);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_EQ(outcome.err, "");
    return outcome.out;
  }
  CommandLine line;
};

TEST_F(Tools, audit) {
  const std::vector<std::string> few = {"audit", "tiny.toml", "--entries", "1", "--sequences", "1"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), few.begin(), few.end());
    return more;
  };
  const std::string table = output(few);
  EXPECT_NE(table.find("\nproven: "), std::string::npos) << table;
  EXPECT_NE(table.find(" training tokens, vocabulary"), std::string::npos) << table;
  EXPECT_NE(output(with({"--tokens", "2"})).find("2 training tokens (of a context of 8), vocabulary"),
            std::string::npos);
  for (const Json& report :
       {Json::parse(output(with({"--json"}))), Json::parse(output(with({"--json", "--random"})))}) {
    EXPECT_TRUE(report["passed"]);
    EXPECT_GT(report["rows"].size(), 40u);
    for (const Json& row : report["rows"]) {  // one row is for comparison only: it has no limit and no verdict
      EXPECT_EQ(row["passed"], row["limit"].is_null() ? Json() : Json(true)) << row;
    }
  }
  EXPECT_EQ(output(with({"--json=report.json", "--quiet"})).substr(0, 9), "\nproven: ");
  EXPECT_TRUE(Json::parse(line.read("report.json"))["passed"]);
  EXPECT_EQ(line.run(with({"--entries", "0"})).exit_code, 2);
  EXPECT_EQ(line.run(with({"--set", "data.files=[\"none.txt\"]"})).exit_code, 4);
  EXPECT_EQ(line.run(with({"--set", "data.files=[\"none.txt\"]", "--random"})).exit_code, 0);
}

TEST_F(Tools, generate) {
  const std::string text = output({"generate", "run", "--prompt", "the ", "--tokens", "30"});
  EXPECT_EQ(text.size(), 4u + 30 + 1);
  EXPECT_EQ(text.find("the "), 0u);
  EXPECT_EQ(output({"generate", "run/checkpoints/latest.h5", "--prompt", "the ", "-n", "30"}), text);
  EXPECT_NE(output({"generate", "run", "--prompt", "the ", "-n", "30", "--seed", "2"}), text);
  // A prompt from a file or a pipe is not repeated in the output.
  line.write("prompt.txt", "the ");
  EXPECT_EQ(output({"generate", "run", "--prompt-file", "prompt.txt", "-n", "30"}), text.substr(4));
  EXPECT_EQ(output({"generate", "run", "--prompt-file", "-", "-n", "30"}, "the "), text.substr(4));
  const Outcome stopped = line.run({"generate", "run", "--prompt", "the ", "--stop-at-context"});
  EXPECT_EQ(stopped.out.size(), 8u + 1);
  EXPECT_EQ(stopped.err, "note: the text ends because the context of 8 tokens is full (--stop-at-context)\n");
  EXPECT_EQ(line.run({"generate", "run", "--prompt", "the fox saw the", "-n", "2"}).err,
            "note: the prompt has 15 tokens, the context 8: the model reads the last 8 only\n");
  const Outcome full = line.run({"generate", "run", "--prompt", "the fox ", "--stop-at-context"});
  EXPECT_EQ(full.out, "the fox \n");
  EXPECT_EQ(full.err, "note: nothing was generated: the prompt fills the context of 8 tokens (--stop-at-context)\n");
  EXPECT_EQ(line.run({"generate", "run", "--prompt", "the fox ", "--stop-at-context", "--quiet"}).err, "");
  const std::string stop = text.substr(10, 2);
  EXPECT_EQ(output({"generate", "run", "--prompt", "the ", "--stop", stop}), text.substr(0, text.find(stop, 4)) + "\n");
  const std::string greedy = output({"generate", "run", "--prompt", "the ", "-n", "9", "--temperature", "0"});
  EXPECT_EQ(output({"generate", "run", "--prompt", "the ", "-n", "9", "--top-k", "1"}), greedy);
  EXPECT_EQ(output({"generate", "run", "--prompt", "the ", "-n", "9", "--top-p", "0"}), greedy);
}

TEST_F(Tools, eval) {
  const std::string text = output({"eval", "run"});
  EXPECT_EQ(output({"eval", "run"}), text);
  EXPECT_EQ(output({"eval", "run", "--threads", "2"}), text);
  EXPECT_EQ(text.find("run/checkpoints/step-00000006.h5: step 6, 39 tokens: loss "), 0u) << text;
  const Json json = Json::parse(output({"eval", "run", "--json"}));
  EXPECT_EQ(json["tokens"], 39);
  EXPECT_NEAR(json["perplexity"].get<double>(), std::exp(json["loss"].get<double>()), 1e-9);
  EXPECT_EQ(Json::parse(output({"eval", "run", "--data", "text.txt", "--json"}))["tokens"], 399);
  EXPECT_EQ(output({"eval", "run", "--json=result.json"}), text);
  EXPECT_EQ(Json::parse(line.read("result.json")), json);
  line.write("text.txt", line.read("text.txt") + "the ");
  const Outcome changed = line.run({"eval", "run"});
  EXPECT_EQ(changed.exit_code, 0);
  EXPECT_EQ(changed.err, "note: the text has changed since the model was trained\n");
}

TEST_F(Tools, inspect) {
  const std::string file = "run/checkpoints/step-00000006.h5";
  const std::string text = output({"inspect", "run"});
  for (const char* part :
       {"seal sound", "2480 parameters", "/loop/step = 6", "/model/embedding/weight", "rms ", "[model]"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part;
  }
  EXPECT_EQ(text.find("/optimizer/embedding"), std::string::npos);
  EXPECT_NE(output({"inspect", "run", "--states"}).find("/optimizer/embedding/weight/m"), std::string::npos);
  EXPECT_EQ(output({"inspect", file, "--verify"}).find(file + ": sound: "), 0u);
  EXPECT_EQ(output({"inspect", file, "--reseal"}), file + ": the seal is valid already; the file is unchanged\n");

  const hid_t h5 = H5Fopen((line / file).c_str(), H5F_ACC_RDWR, H5P_DEFAULT);
  const hid_t dataset = H5Dopen2(h5, "/model/embedding/weight", H5P_DEFAULT);
  std::vector<float> zeros(16 * 16);
  H5Dwrite(dataset, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, zeros.data());
  H5Dclose(dataset), H5Fclose(h5);
  EXPECT_EQ(line.run({"inspect", file, "--verify"}).exit_code, 1);
  EXPECT_EQ(output({"inspect", file, "--reseal"}), file + ": sealed\n");
  EXPECT_EQ(line.run({"inspect", file, "--verify"}).exit_code, 0);
  EXPECT_EQ(line.run({"eval", file}).exit_code, 0);

  line.write(file, "");  // the run uses an earlier checkpoint and reports it
  const Outcome fallen = line.run({"inspect", "run", "--verify"});
  EXPECT_EQ(fallen.exit_code, 1);
  EXPECT_EQ(fallen.out.find("run/checkpoints/step-00000006.h5: it is empty\n"), 0u) << fallen.out;
}

TEST_F(Tools, bench) {
  const std::string out = output({"bench", "tiny.toml", "--set", "model.vocab_size=50", "--steps", "4", "--json"});
  const Json json = Json::parse(out);
  for (const char* key : {"median_step_ms", "min_step_ms", "tokens_per_s", "gflops", "gemm_peak_gflops", "peak_rss_mb",
                          "parameters", "threads"}) {
    ASSERT_TRUE(json.contains(key)) << key;
    EXPECT_GE(json[key].get<double>(), 0.0) << key;
  }
  EXPECT_GT(json["median_step_ms"].get<double>(), 0.0);
  EXPECT_EQ(json["threads"], 1);
}

TEST_F(Tools, help) {
  const std::pair<std::string, std::vector<std::string>> commands[] = {
      {"train", {"--set", "--out", "--resume", "--init", "--overwrite"}},
      {"generate",
       {"--prompt", "--prompt-file", "--tokens", "--temperature", "--top-k", "--top-p", "--seed", "--stop",
        "--stop-at-context", "--raw"}},
      {"eval", {"--data", "--json"}},
      {"audit", {"--entries", "--random", "--tokens", "--sequences", "--set", "--json"}},
      {"inspect", {"--verify", "--reseal", "--states"}},
      {"bench", {"--steps", "--set", "--json"}},
      {"config", {"--markdown", "--set"}},
  };
  const std::string all = output({"--help"});
  EXPECT_EQ(output({"help"}), all);
  for (const auto& [command, options] : commands) {
    EXPECT_NE(all.find("\n  " + command + " "), std::string::npos) << command;
    const std::string text = output({command, "--help"});
    for (const std::string& option : options) EXPECT_NE(text.find(option), std::string::npos) << command << option;
    for (const char* option : {"--help", "--threads", "--quiet"}) EXPECT_NE(text.find(option), std::string::npos);
  }
  EXPECT_EQ(output({"--version"}).find("handgrad "), 0u);
}

}  // namespace
}  // namespace handgrad
