#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "handgrad/config/validate.h"
#include "handgrad/core/parallel.h"
#include "handgrad/train/memory.h"
#include "handgrad/train/run.h"
#include "support/temporary_folder.h"
#include "support/training.h"

// The estimated memory is the memory that a run uses, with evaluations and saves, measured in a process of its own.

namespace handgrad {
namespace {

Config shape(Index layers, Index width, Index context, Index batch) {
  Config config = test::tiny_config();
  ModelConfig& m = config.model;
  m.n_layers = layers, m.n_heads = 4, m.n_kv_heads = 2, m.d_model = width, m.d_ff = 11 * width / 4, m.context = context;
  config.train.batch_size = batch, config.train.steps = 2, config.eval.every = 1, config.checkpoint.every = 1;
  return config;
}

// The peak resident memory of the child in bytes.
Index measured_peak(const Config& config, const std::string& text) {
  const pid_t child = ::fork();
  if (child == 0) {
    const test::TemporaryFolder folder;
    const ThreadScope scope(2);
    Run run(Trainer(config, DataSource::from_text(config, text)), folder / "run");
    while (!run.done()) run.advance();
    ::_exit(0);
  }
  int status = 0;
  rusage usage{};
  ::wait4(child, &status, 0, &usage);
  EXPECT_EQ(status, 0);
  return Index{usage.ru_maxrss} * 1024;
}

TEST(MemoryLong, the_estimate_is_within_a_fifth_of_what_is_taken) {
  const std::string text = test::sample_text(400'000);
  Config explicit_form = shape(4, 128, 512, 4), gpt = shape(4, 256, 128, 32), wide = shape(4, 768, 128, 8);
  explicit_form.model.attention = AttentionKind::explicit_form;
  test::make_gpt(gpt.model);
  gpt.model.n_kv_heads = 4;
  for (const Config& config :
       {shape(4, 128, 128, 128), shape(4, 128, 2048, 4), shape(6, 256, 256, 16), explicit_form, gpt, wide}) {
    const DataSource source = DataSource::from_text(config, text);
    const Config resolved = complete_config(config, source.tokenizer().name(), source.tokenizer().vocab_size());
    const auto estimate =
        static_cast<double>(estimate_memory(resolved, source.text_bytes(), source.token_count()).peak());
    const auto taken = static_cast<double>(measured_peak(config, text));
    EXPECT_NEAR(estimate / taken, 1.0, 0.2) << config.model.d_model << " " << config.model.context << ": " << estimate
                                            << " estimated, " << taken << " taken";
  }
}

}  // namespace
}  // namespace handgrad
