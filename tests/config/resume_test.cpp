#include "handgrad/config/resume.h"

#include <gtest/gtest.h>

#include <functional>

#include "handgrad/core/errors.h"
#include "support/message.h"

namespace handgrad {
namespace {

using Change = std::function<void(Config&)>;

Config changed(const Change& change) {
  Config config;
  change(config);
  return config;
}

std::string refusal(const Change& change, Index steps_done = 10) {
  return test::message_of<ConfigError>([&] { check_resume(Config{}, changed(change), steps_done); });
}

TEST(resume, nothing_changed) { EXPECT_TRUE(check_resume(Config{}, Config{}, 10).empty()); }

TEST(resume, free_changes_are_listed) {
  const auto differences =
      check_resume(Config{}, changed([](Config& c) { c.optimizer.lr = 0.5, c.eval.every = 3; }), 10);
  ASSERT_EQ(differences.size(), 2u);
  EXPECT_EQ(differences[0].key, "optimizer.lr");
  EXPECT_EQ(differences[0].stored, "0.001");
  EXPECT_EQ(differences[0].requested, "0.5");
  EXPECT_EQ(differences[1].key, "eval.every");
}

TEST(resume, refusals_name_the_key_and_both_values) {
  const std::pair<Change, const char*> cases[] = {
      {[](Config& c) { c.model.n_layers = 3; }, "model.n_layers is 4 in the stored run, 3 requested"},
      {[](Config& c) { c.model.n_heads = 2, c.model.n_kv_heads = 4; },
       "model.n_heads is 4 in the stored run, 2 requested"},
      {[](Config& c) { c.model.rope_theta = 5e5; },
       "model.rope_theta is 10000.0 in the stored run, 500000.0 requested"},
      {[](Config& c) { c.model.norm_eps = 1e-6; }, "model.norm_eps is 1e-05 in the stored run, 1e-06 requested"},
      {[](Config& c) { c.model.rope_pairing = RopePairing::half; },
       "model.rope_pairing is \"adjacent\" in the stored run, \"half\" requested"},
      {[](Config& c) { c.model.tie_embeddings = false; },
       "model.tie_embeddings is true in the stored run, false requested"},
      {[](Config& c) { c.tokenizer.kind = TokenizerKind::byte; },
       "tokenizer.kind is \"char\" in the stored run, \"byte\" requested"},
      {[](Config& c) { c.data.order = DataOrder::random; },
       "data.order is \"epoch\" in the stored run, \"random\" requested"},
      {[](Config& c) { c.train.seed = 2; }, "train.seed is 1 in the stored run, 2 requested"},
      {[](Config& c) { c.optimizer.name = OptimizerKind::sgd; },
       "optimizer.name is \"adamw\" in the stored run, \"sgd\" requested"},
      {[](Config& c) { c.train.accumulation = 2; },
       "train.batch_size x train.accumulation is 16 x 1 in the stored run, 16 x 2 requested"},
      {[](Config& c) { c.train.steps = 9; }, "train.steps 9 requested, but 10 are completed"},
      {[](Config& c) { c.train.seed = 2, c.model.bias = true; },
       "model.bias is false in the stored run, true requested; train.seed is 1 in the stored run, 2 requested"},
  };
  for (const auto& [change, message] : cases) EXPECT_EQ(refusal(change), std::string("cannot resume: ") + message);
}

TEST(resume, what_may_change) {
  // The paths of the text may change. The trainer checks that the text is the same.
  EXPECT_EQ(check_resume(Config{}, changed([](Config& c) { c.data.files = {"/x"}; }), 1).size(), 1u);
  EXPECT_EQ(check_resume(Config{}, changed([](Config& c) { c.train.steps = 4000; }), 1000).size(), 1u);
  EXPECT_EQ(check_resume(Config{}, changed([](Config& c) { c.train.steps = 500; }), 500).size(), 1u);
  EXPECT_EQ(
      check_resume(Config{}, changed([](Config& c) { c.train.batch_size = 4, c.train.accumulation = 4; }), 1).size(),
      2u);
}

TEST(resume, values_left_open_are_compared_resolved) {
  EXPECT_TRUE(resume_differences(Config{}, changed([](Config& c) { c.model.n_kv_heads = 4; })).empty());
  EXPECT_TRUE(resume_differences(Config{}, changed([](Config& c) { c.model.vocab_size = 65; })).empty());
  Config stored;
  stored.model.vocab_size = 65;
  EXPECT_EQ(test::message_of<ConfigError>(
                [&] { check_resume(stored, changed([](Config& c) { c.model.vocab_size = 66; }), 1); }),
            "cannot resume: model.vocab_size is 65 in the stored run, 66 requested");
}

}  // namespace
}  // namespace handgrad
