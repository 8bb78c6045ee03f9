#include "handgrad/train/evaluate.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "handgrad/core/errors.h"
#include "support/message.h"
#include "support/training.h"

namespace handgrad {
namespace {

using test::message_of;

// The sum of -ln p over all targets of windows of `context`, one window at a time, from the logits.
double sum_by_hand(const CausalLm<float>& model, std::span<const TokenId> tokens) {
  const auto context = static_cast<std::size_t>(model.config().context);
  const auto vocabulary = static_cast<std::size_t>(model.config().vocab_size);
  Tape<float> tape(false);
  double sum = 0.0;
  for (std::size_t start = 0; start + 1 < tokens.size(); start += context) {
    const auto inputs = tokens.subspan(start, std::min(context, tokens.size() - 1 - start));
    tape.reset();
    const Var<float> logits = model.logits(tape, {inputs});
    for (std::size_t t = 0; t < inputs.size(); ++t) {
      const float* row = logits.view().data + t * vocabulary;
      double total = 0.0;
      for (std::size_t v = 0; v < vocabulary; ++v) total += std::exp(static_cast<double>(row[v]));
      sum += std::log(total) - static_cast<double>(row[static_cast<std::size_t>(tokens[start + t + 1])]);
    }
  }
  return sum;
}

class EvaluateTest : public test::OneThread {};

TEST_F(EvaluateTest, the_whole_of_a_text_whatever_its_length) {
  Config config = test::tiny_config();
  std::string text = test::sample_text(200);
  for (std::size_t i = 0; i < text.size(); i += 9) text.replace(i, 1, "\xc3\xa9");  // two bytes, one token
  Trainer trainer(config, DataSource::from_text(config, text));
  test::train_to(trainer, 10);
  const auto all = trainer.source().train();
  for (const std::size_t length : {2, 3, 8, 9, 10, 16, 17, 18, 63, 100}) {
    const auto tokens = all.first(length);
    const double expected = sum_by_hand(trainer.model(), tokens);
    for (const Index batch_size : {1, 3, 64}) {
      const Evaluation e = evaluate_all(trainer.model(), trainer.source().tokenizer(), tokens, batch_size);
      EXPECT_EQ(e.tokens, static_cast<Index>(length) - 1);
      EXPECT_NEAR(e.loss, expected / static_cast<double>(e.tokens), 1e-6 * e.loss) << length;
      const auto bytes = static_cast<double>(trainer.source().tokenizer().decode(tokens.subspan(1)).size());
      EXPECT_NEAR(e.bits_per_byte, expected / std::numbers::ln2 / bytes, 1e-6 * e.bits_per_byte) << length;
      EXPECT_DOUBLE_EQ(e.perplexity(), std::exp(e.loss));
    }
  }
}

TEST_F(EvaluateTest, a_text_too_short_is_an_error) {
  Config config = test::tiny_config();
  Trainer trainer(config, test::tiny_source(config));
  EXPECT_EQ(message_of<DataError>([&] {
              evaluate_all(trainer.model(), trainer.source().tokenizer(), trainer.source().train().first(1), 4);
            }),
            "evaluation: the text must have at least two tokens, got 1");
}

}  // namespace
}  // namespace handgrad
