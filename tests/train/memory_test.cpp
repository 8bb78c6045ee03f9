#include "handgrad/train/memory.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "handgrad/config/validate.h"
#include "handgrad/core/memory.h"
#include "support/command_line.h"
#include "support/message.h"
#include "support/training.h"

namespace handgrad {
namespace {

using test::CommandLine;
using test::Outcome;

Config config_of(Index width) {
  Config config = test::tiny_config();
  config.model.d_model = width, config.model.vocab_size = 50, config.model.d_ff = 2 * width;
  return resolve(config);
}

TEST(MemoryOfARun, counts_the_parameters_of_a_model_that_is_never_made) {
  for (const Index width : {16, 64}) {
    Config config = config_of(width);
    test::make_llama(config.model);
    EXPECT_EQ(CausalLm<float>::count_parameters(config.model), CausalLm<float>(config.model).store().scalar_count());
    test::make_gpt(config.model);
    config.model.tie_embeddings = false;
    EXPECT_EQ(CausalLm<float>::count_parameters(config.model), CausalLm<float>(config.model).store().scalar_count());
  }
  Config huge = config_of(1 << 14);
  huge.model.n_layers = 1000, huge.model.d_ff = 1 << 16;
  EXPECT_GT(CausalLm<float>::count_parameters(huge.model), Index{1} << 41);
}

TEST(MemoryOfARun, counts_states_checkpoint_and_text_exactly) {
  Config config = config_of(64);
  const Index parameters = CausalLm<float>::count_parameters(config.model);
  MemoryEstimate estimate = estimate_memory(config, 1000, 900);
  EXPECT_EQ(estimate.states, 16 * parameters);
  EXPECT_EQ(estimate.checkpoint, 12 * parameters);
  EXPECT_EQ(estimate.text, 1000);
  EXPECT_EQ(estimate.tokens, 3600);
  config.optimizer.name = OptimizerKind::sgd, config.log.health_every = 10;
  estimate = estimate_memory(config, 1000, 900);
  EXPECT_EQ(estimate.states, 16 * parameters) << "a moment less, the watched weights more";
  EXPECT_EQ(estimate.checkpoint, 8 * parameters);
  EXPECT_EQ(estimate_memory(config, 4'000'000'000, 1000).peak(), estimate.program + 4'000'004'000)
      << "while it is read";
}

TEST(MemoryOfARun, refuses_what_does_not_fit_and_names_what_helps) {
  const auto refusal = [](const Config& config) {
    const MemoryEstimate estimate = estimate_memory(config, 0, 0);
    return test::message_of<ResourceError>([&] { check_memory(estimate, config); });
  };
  Config config = config_of(64);
  EXPECT_NO_THROW(check_memory(estimate_memory(config, 1000, 900), config));
  config.train.batch_size = 1 << 24;
  EXPECT_NE(refusal(config).find("use smaller train.batch_size with train.accumulation raised to match"),
            std::string::npos)
      << refusal(config);
  Config deep = config_of(1 << 14);
  deep.model.n_layers = 1000;
  EXPECT_NE(refusal(deep).find("smaller model.d_model, model.n_layers or model.vocab_size"), std::string::npos);
}

// Memory that is already allocated, or is released before training, is not counted again.
TEST(MemoryOfARun, what_is_in_hand_does_not_count_again) {
  const Config config = config_of(64);
  const MemoryEstimate estimate = estimate_memory(config, Index{1} << 45, Index{1} << 45);
  EXPECT_NO_THROW(check_memory(estimate, config)) << "the text has been read";
  MemoryEstimate resumed;
  resumed.checkpoint = available_memory_bytes() + (Index{1} << 30);
  EXPECT_THROW(check_memory(resumed, config), ResourceError);
  EXPECT_NO_THROW(check_memory(resumed, config, Index{4} << 30)) << "the file that it resumes from is given back";
}

// In a child process, since a process cannot raise its limit again.
TEST(MemoryOfARun, limits_of_the_process_count) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "the address sanitizer takes terabytes of address space";
#endif
  EXPECT_GT(available_memory_bytes(), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    rlimit limit{};
    ::getrlimit(RLIMIT_AS, &limit);
    limit.rlim_cur = 8'000'000'000;
    const bool set = ::setrlimit(RLIMIT_AS, &limit) == 0;
    const Index available = available_memory_bytes();
    ::_exit(set && available > 0 && available < 8'000'000'000 ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST(MemoryOfARun, an_audit_that_does_not_fit_is_refused) {
  CommandLine line;
  line.prepare();
  const Outcome outcome = line.run(
      {"audit", "tiny.toml", "--random", "--set", "model.vocab_size=16777216", "--set", "model.d_model=65536"});
  EXPECT_EQ(outcome.exit_code, 5);
  EXPECT_EQ(outcome.err.rfind("error: memory: about ", 0), 0u) << outcome.err;
}

TEST(MemoryOfARun, a_bench_that_does_not_fit_is_refused) {
  CommandLine line;
  line.prepare();
  const Outcome outcome = line.run({"bench", "tiny.toml", "--set", "model.vocab_size=50", "--set",
                                    "train.batch_size=60000", "--set", "model.context=32768"});
  EXPECT_EQ(outcome.exit_code, 5);
  EXPECT_NE(outcome.err.find("smaller train.batch_size"), std::string::npos) << outcome.err;
}

// The file is sparse and has no blocks: only its size matters.
TEST(MemoryOfARun, texts_of_folders_and_of_eval_that_do_not_fit_are_refused_before_they_are_read) {
  CommandLine line;
  line.prepare();
  ASSERT_EQ(line.run({"train", "tiny.toml", "--out", "run"}).exit_code, 0);
  line.write("texts/long.txt", "");
  std::error_code error;
  std::filesystem::resize_file(line / "texts/long.txt", std::uintmax_t{1} << 40, error);
  if (error) GTEST_SKIP() << "no file of this size here";
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"train", "tiny.toml", "--out", "other", "--set", "data.files=[\"texts\"]"},
        {"eval", "run", "--data", "texts"},
        {"eval", "run", "--data", "texts/long.txt"}}) {
    const Outcome outcome = line.run(words);
    EXPECT_EQ(outcome.exit_code, 5) << words[0];
    EXPECT_EQ(outcome.err.rfind("error: memory: reading a text of ", 0), 0u) << outcome.err;
  }
  EXPECT_FALSE(line.exists("other"));
}

TEST(MemoryOfARun, a_text_that_does_not_fit_is_refused_before_it_is_read) {
  EXPECT_NO_THROW(check_memory_for_text(1000));
  EXPECT_EQ(test::message_of<ResourceError>([] {
              check_memory_for_text(Index{1} << 50);
            }).rfind("memory: reading a text of ", 0),
            0u);
}

// A sparse file takes the place of a text that fits on no machine.
TEST(MemoryOfARun, every_command_refuses_a_text_that_does_not_fit) {
  CommandLine line;
  line.prepare();
  ASSERT_EQ(line.run({"train", "tiny.toml", "--out", "run"}).exit_code, 0);
  line.write("huge.txt", "");
  std::error_code error;
  std::filesystem::resize_file(line / "huge.txt", std::uintmax_t{1} << 40, error);
  if (error) GTEST_SKIP() << "no sparse file of a terabyte can be made here: " << error.message();
  const std::string huge = "data.files=[\"huge.txt\"]";
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
           {"train", "tiny.toml", "--set", huge},
           {"audit", "tiny.toml", "--set", huge},
           {"eval", "run", "--data", "huge.txt"},
       }) {
    const Outcome outcome = line.run(words);
    EXPECT_EQ(outcome.exit_code, 5) << words[0];
    EXPECT_EQ(outcome.err.rfind("error: memory: reading a text of 1099512 MB needs up to 5497559 MB", 0), 0u)
        << outcome.err;
  }
  EXPECT_NE(line.run({"config", "check", "tiny.toml", "--set", huge}).out.find("memory: reading a text of 1099512 MB"),
            std::string::npos);
}

TEST(MemoryOfARun, too_much_is_refused_before_anything_is_made) {
  CommandLine line;
  line.prepare();
  const std::string before = line.everything();
  const Outcome outcome =
      line.run({"train", "tiny.toml", "--set", "train.batch_size=60000", "--set", "model.context=2048", "--set",
                "data.files=[\"long.txt\"]", "--set", "model.n_layers=200"});
  EXPECT_EQ(outcome.exit_code, 4) << "the text is too short, said first";
  line.write("long.txt", test::sample_text(50'000));
  const std::string with_text = line.everything();
  const Outcome refused =
      line.run({"train", "tiny.toml", "--set", "train.batch_size=60000", "--set", "model.context=2048", "--set",
                "data.files=[\"long.txt\"]", "--set", "model.n_layers=200"});
  EXPECT_EQ(refused.exit_code, 5);
  EXPECT_EQ(refused.err.rfind("error: memory: about ", 0), 0u) << refused.err;
  EXPECT_NE(refused.err.find("train.batch_size"), std::string::npos) << refused.err;
  EXPECT_NE(refused.out.find("parameters, vocabulary"), std::string::npos) << "what is too large is said";
  EXPECT_TRUE(line.everything() == with_text);
}

}  // namespace
}  // namespace handgrad
