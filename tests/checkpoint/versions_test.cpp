#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "handgrad/generate/generator.h"
#include "handgrad/train/evaluate.h"
#include "support/training.h"

// Checkpoints of every earlier version, each of a run stopped halfway, and the results of that version
// (tools/fixtures/make_checkpoints.sh). Every later version must load, evaluate, generate from and resume them.

namespace handgrad {
namespace {

namespace files = std::filesystem;

const files::path versions = files::path(HANDGRAD_SOURCE_DIR) / "tests/data/versions";

std::string read(const files::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

struct Fixture {
  files::path folder;
  std::string name;
  Checkpoint checkpoint = Checkpoint::load((folder / (name + ".h5")).string());

  DataSource source() const { return DataSource::load(config(), checkpoint.tokenizer()); }
  Config config() const {
    Config config = checkpoint.config();
    config.data.files = {(folder / "text.txt").string()};
    return config;
  }
  std::string other(const char* suffix) const { return read(folder / (name + suffix)); }
};

class EarlierVersions : public test::OneThread {
 protected:
  template <class Check>
  void for_each_checkpoint(Check check) {
    int found = 0;
    for (const auto& entry : files::recursive_directory_iterator(versions)) {
      if (entry.path().extension() != ".h5") continue;
      SCOPED_TRACE(entry.path().string());
      check(Fixture{entry.path().parent_path(), entry.path().stem().string()});
      ++found;
    }
    EXPECT_GE(found, 4);
  }
};

// Between versions, values may change by rounding. The results that a user sees must not.
void expect_close(double value, double then) { EXPECT_NEAR(value, then, 1e-4 * std::abs(then)); }

TEST_F(EarlierVersions, evaluate_as_they_did) {
  for_each_checkpoint([](const Fixture& f) {
    const auto then = nlohmann::json::parse(f.other(".eval.json"));
    const auto tokens = f.checkpoint.tokenizer()->encode(read(f.folder / "text.txt"));
    const Evaluation now = evaluate_all(f.checkpoint.model<float>(), *f.checkpoint.tokenizer(), tokens, 4);
    expect_close(now.loss, then["loss"]);
    expect_close(now.bits_per_byte, then["bits_per_byte"]);
  });
}

TEST_F(EarlierVersions, write_as_they_did) {
  for_each_checkpoint([](const Fixture& f) {
    TextOptions options;
    options.tokens = 40;
    options.sampling.temperature = 0;
    std::string text = "the fox";
    generate_text(f.checkpoint.model<float>(), *f.checkpoint.tokenizer(), text, options, [&](std::string_view piece) {
      text += piece;
      return true;
    });
    EXPECT_EQ(text + "\n", f.other(".txt"));
  });
}

TEST_F(EarlierVersions, resume_and_learn_as_they_did) {
  for_each_checkpoint([](const Fixture& f) {
    auto trainer = Trainer::resume(f.checkpoint, f.config(), f.source());
    const Index first = trainer.loop().step;
    EXPECT_GT(first, 0);
    std::istringstream rows(f.other(".rows.jsonl"));
    Index compared = 0;
    for (std::string line; std::getline(rows, line);) {
      const auto row = nlohmann::json::parse(line);
      if (row["step"] <= first) continue;
      const StepReport report = trainer.step();
      EXPECT_EQ(report.step, row["step"].get<Index>());
      expect_close(report.loss, row["loss"]);
      expect_close(report.grad_norm, row["grad_norm"]);
      EXPECT_DOUBLE_EQ(report.lr, row["lr"].get<double>());
      EXPECT_EQ(report.tokens, row["tokens"].get<Index>());
      ++compared;
    }
    EXPECT_TRUE(trainer.done());
    EXPECT_EQ(compared, trainer.config().train.steps - first);
  });
}

}  // namespace
}  // namespace handgrad
