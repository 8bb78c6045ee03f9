#include <gtest/gtest.h>

#include <algorithm>

#include "handgrad/checkpoint/run_folder.h"
#include "support/checkpoint_editor.h"
#include "support/command_line.h"

// Prompts as people type them, and the notes of generate and eval about the checkpoint that they use.

namespace handgrad {
namespace {

using test::CommandLine;
using test::Launch;
using test::Outcome;

class Generate : public testing::Test {
 protected:
  void SetUp() override {
    line.prepare();
    ASSERT_EQ(line.run({"train", "tiny.toml", "--out", "run"}).exit_code, 0);
  }
  Outcome generate(std::vector<std::string> more, const std::string& input = "") const {
    more.insert(more.begin(), {"generate", "run", "-n", "5"});
    Launch launch;
    launch.input = input;
    return line.run(more, launch);
  }
  // Trains on the given text, in the folder "run".
  void retrain(const std::string& text) const {
    line.write("text.txt", text);
    const Outcome outcome = line.run({"train", "tiny.toml", "--out", "run", "--overwrite"});
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  }
  CommandLine line;
};

std::string repeated(const std::string& text) {
  std::string result;
  for (int i = 0; i < 40; ++i) result += text;
  return result;
}

TEST_F(Generate, a_prompt_file_of_one_line_is_what_was_typed) {
  retrain(repeated("the fox\nsaw\n"));
  const std::string typed = generate({"--prompt", "the fox"}).out.substr(7);
  for (const char* content : {"the fox", "the fox\n", "the fox\r\n"}) {
    line.write("prompt.txt", content);
    EXPECT_EQ(generate({"--prompt-file", "prompt.txt"}).out, typed);
    EXPECT_EQ(generate({"--prompt-file", "-"}, content).out, typed);
  }
  // Several lines are used as they are, and a single line break is a prompt.
  EXPECT_EQ(generate({"--prompt-file", "-"}, "fox\nsaw\n").out, generate({"--prompt", "fox\nsaw\n"}).out.substr(8));
  EXPECT_EQ(generate({"--prompt-file", "-"}, "\n").out, generate({}).out);
  EXPECT_EQ(generate({"--prompt-file", "-"}).err, "error: prompt: must have at least one token, got none\n");
  EXPECT_EQ(generate({"--prompt-file", "-"}, "the \xC3").err,
            "error: standard input: invalid UTF-8 at byte offset 4: the text ends inside the character that begins "
            "with 0xC3\n");
}

TEST_F(Generate, a_typed_backslash_says_how_to_get_a_line_break) {
  const Outcome outcome = generate({"--prompt", "the\\nfox"});
  EXPECT_EQ(outcome.exit_code, 4);
  EXPECT_NE(outcome.err.find("'\\' (U+005C) once (line 1, character 4)"), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("; a shell does not convert \\n to a line break; use $'...\\n...' or --prompt-file\n"),
            std::string::npos)
      << outcome.err;
  EXPECT_EQ(generate({"--prompt", "the Zoo"}).err.find("shell"), std::string::npos);
}

TEST_F(Generate, a_decomposed_accent_names_the_letter_that_is_known) {
  retrain(repeated("the caf\xC3\xA9 "));
  const Outcome outcome = generate({"--prompt", "cafe\xCC\x81"});
  EXPECT_EQ(outcome.exit_code, 4);
  EXPECT_NE(outcome.err.find("the vocabulary has the composed '\xC3\xA9' (U+00E9): normalise the text to NFC"),
            std::string::npos)
      << outcome.err;
}

// If the vocabulary has no line break, the default prompt is another character, and a note names it.
TEST_F(Generate, without_a_prompt) {
  EXPECT_EQ(generate({}).err, "");
  retrain(repeated("the fox "));
  const Outcome begun = generate({});
  EXPECT_EQ(begun.exit_code, 0);
  EXPECT_EQ(begun.err,
            "note: the vocabulary has no line break, the default prompt; the prompt is ' ' (U+0020) instead, and "
            "is not printed\n");
  EXPECT_EQ(" " + begun.out, generate({"--prompt", " "}).out);
}

TEST_F(Generate, a_prompt_longer_than_the_context_is_pointed_out) {
  const Outcome outcome = generate({"--prompt", "the hen saw"});
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_EQ(outcome.err, "note: the prompt has 11 tokens, the context 8: the model reads the last 8 only\n");
  EXPECT_EQ(generate({"--prompt", "hen saw "}).err, "");
  const Outcome full = generate({"--prompt", "hen saw ", "--stop-at-context"});
  EXPECT_EQ(full.out, "hen saw \n");
  EXPECT_EQ(full.err, "note: nothing was generated: the prompt fills the context of 8 tokens (--stop-at-context)\n");
}

// The learning rate is so high that the model becomes worse and the first evaluation is the best.
TEST_F(Generate, the_newest_checkpoint_says_where_the_best_is) {
  const Outcome trained = line.run({"train", "tiny.toml", "--out", "worse", "--set", "optimizer.lr=3", "--set",
                                    "schedule.kind=constant", "--set", "schedule.warmup_steps=3", "--set",
                                    "eval.every=1", "--set", "train.steps=6", "--set", "checkpoint.every=1"});
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  const Index best = find_checkpoint(line / "worse").checkpoint->loop().best_step;
  ASSERT_LT(best, 6) << trained.out;
  const std::string note = "note: using the newest checkpoint, step 6; the lowest validation loss was at step " +
                           std::to_string(best) + ": worse/checkpoints/best.h5\n";
  EXPECT_EQ(line.run({"generate", "worse", "--prompt", "the "}).err, note);
  EXPECT_EQ(line.run({"generate", "worse", "--prompt", "the ", "--quiet"}).err, "");
  EXPECT_EQ(line.run({"generate", "worse/checkpoints/best.h5", "--prompt", "the "}).err, "");
}

TEST_F(Generate, the_default_seed_is_said) {
  EXPECT_EQ(generate({"--prompt", "the "}).out, generate({"--prompt", "the ", "--seed", "1"}).out);
  const std::string help = line.run({"generate", "--help"}).out;
  for (const char* text :
       {"Another seed gives another text", "the same seed gives the same text", "(default: 1)", "best.h5"}) {
    EXPECT_NE(help.find(text), std::string::npos) << help;
  }
}

TEST_F(Generate, an_evaluation_that_is_not_finite_fails) {
  const std::string file = "run/checkpoints/step-00000006.h5";
  test::edit_checkpoint(line / file, [](test::CheckpointEditor& e) {
    float* values = e.floats("/model/final_norm/weight");
    std::fill(values, values + 16, 3e38f);
    std::fill(e.floats("/model/embedding/weight"), e.floats("/model/embedding/weight") + 16, 1e6f);
  });
  const Outcome outcome = line.run({"eval", file, "--json=out.json"});
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_EQ(outcome.err.find("error: " + file + ": the loss over 39 tokens is "), 0u) << outcome.err;
  EXPECT_NE(line.read("out.json").find("\"loss\":null"), std::string::npos);
}

}  // namespace
}  // namespace handgrad
