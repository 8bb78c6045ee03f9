#include "handgrad/generate/generator.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <thread>

#include "handgrad/config/validate.h"
#include "handgrad/core/errors.h"
#include "handgrad/files/utf8.h"
#include "support/message.h"
#include "support/training.h"

namespace handgrad {
namespace {

using test::message_of;

// An untrained byte model with large weights, so that its text varies.
CausalLm<float> byte_model(Index context = 8) {
  Config config;
  config.model.n_layers = 2, config.model.n_heads = 2, config.model.d_model = 16, config.model.context = context;
  config.model.vocab_size = 256;
  CausalLm<float> model(resolve(config).model);
  model.initialise(7);
  for (Index i = 0; i < model.store().flat_size(); ++i) model.store().mutable_values()[i] *= 8.0f;
  return model;
}

struct Written {
  std::string text;
  std::vector<std::string> pieces;
  Index tokens = 0;
  TextReport report;
};

Written write(const CausalLm<float>& model, const std::string& prompt, const TextOptions& options) {
  Written written;
  const ByteTokenizer tokenizer;
  written.report = generate_text(model, tokenizer, prompt, options, [&](std::string_view piece) {
    written.text += piece;
    written.pieces.emplace_back(piece);
    return true;
  });
  written.tokens = written.report.tokens;
  return written;
}

TextOptions greedy(Index tokens) {
  TextOptions options;
  options.tokens = tokens, options.sampling.temperature = 0.0;
  return options;
}

// The text of a generator, computed without a cache.
std::string write_by_hand(const CausalLm<float>& model, std::vector<TokenId> window, Index tokens) {
  const auto context = static_cast<std::size_t>(model.config().context);
  std::string text;
  if (window.size() > context) window.erase(window.begin(), window.end() - static_cast<std::ptrdiff_t>(context));
  while (static_cast<Index>(text.size()) < tokens) {
    Tape<float> tape(false);
    const Var<float> scores = model.last_logits(tape, {window});
    const TokenId token = sample_token({scores.view().data, 256}, {.temperature = 0.0}, 0);
    text += static_cast<char>(token);
    if (window.size() == context) {  // keep the last half, which includes this token
      window.erase(window.begin(),
                   window.end() - static_cast<std::ptrdiff_t>(std::max<std::size_t>(1, context / 2)) + 1);
    }
    window.push_back(token);
  }
  return text;
}

class GeneratorTest : public test::OneThread {};

TEST_F(GeneratorTest, goes_on_beyond_the_context_with_its_last_half) {
  for (const Index context : {8, 7, 2, 1}) {
    const auto model = byte_model(context);
    const ByteTokenizer tokenizer;
    for (const std::string prompt : {"a", "Once upon a time", "1234567"}) {
      EXPECT_EQ(write(model, prompt, greedy(40)).text, write_by_hand(model, tokenizer.encode(prompt), 40))
          << "context " << context << ", prompt " << prompt;
    }
  }
}

TEST_F(GeneratorTest, stops_at_the_context_if_asked_to) {
  const auto model = byte_model(8);
  TextOptions options = greedy(100);
  options.stop_at_context = true;
  EXPECT_EQ(write(model, "abc", options).tokens, 5);
  EXPECT_EQ(write(model, "abcdefgh", options).tokens, 0);
  EXPECT_EQ(write(model, "abcdefghijkl", options).tokens, 0);
}

TEST_F(GeneratorTest, reports_what_was_cropped_and_why_it_ended) {
  const auto model = byte_model(8);
  TextOptions options = greedy(3);
  const auto report = [&](const std::string& prompt) { return write(model, prompt, options).report; };
  EXPECT_EQ(report("abc").prompt_tokens, 3);
  EXPECT_EQ(report("abcdefgh").prompt_tokens_cropped, 0);
  EXPECT_EQ(report("abcdefghijk").prompt_tokens, 11);
  EXPECT_EQ(report("abcdefghijk").prompt_tokens_cropped, 3);
  EXPECT_EQ(report("abc").end, TextEnd::tokens);
  options.stop_at_context = true;
  EXPECT_EQ(report("abcde").end, TextEnd::tokens) << "both at once: what was asked for is done";
  EXPECT_EQ(report("abcdefg").end, TextEnd::context_full);
  EXPECT_EQ(report("abcdefgh").end, TextEnd::context_full);
  EXPECT_EQ(report("abcdefgh").tokens, 0);
  options.stop = write(model, "abc", greedy(2)).text.substr(0, 1);
  EXPECT_EQ(report("abc").end, TextEnd::stop_text);
  EXPECT_EQ(generate_text(model, ByteTokenizer(), "abc", greedy(3), [](std::string_view) { return false; }).end,
            TextEnd::sink);
}

TEST_F(GeneratorTest, a_second_prompt_begins_as_a_new_generator_does) {
  const auto model = byte_model();
  const std::vector<TokenId> first{1, 2, 3}, second{9, 8, 7, 6, 5, 4, 3, 2, 1, 0};
  const auto continued = [&](Generator& generator, std::span<const TokenId> prompt) {
    generator.prompt(prompt);
    std::vector<TokenId> tokens;
    for (int i = 0; i < 20; ++i) tokens.push_back(generator.next());
    return tokens;
  };
  Generator used(model, {.temperature = 1.0}), fresh(model, {.temperature = 1.0});
  continued(used, first);
  const auto expected = continued(fresh, second);
  EXPECT_EQ(continued(used, second), expected);
  EXPECT_EQ(continued(used, second), expected);
  EXPECT_THROW(used.prompt(std::vector<TokenId>{-1}), RangeError);
  EXPECT_EQ(continued(used, second), expected) << "after a prompt that was refused";
}

TEST_F(GeneratorTest, counts_tokens) {
  const auto model = byte_model();
  EXPECT_EQ(write(model, "a", greedy(0)).text, "");
  EXPECT_EQ(write(model, "a", greedy(5)).tokens, 5);
  EXPECT_EQ(message_of<RangeError>([&] { write(model, "a", greedy(-1)); }), "tokens: must be at least 0, got -1");
}

TEST_F(GeneratorTest, writes_the_same_text_for_the_same_seed) {
  const auto model = byte_model();
  TextOptions options;
  options.tokens = 60;
  const std::string one = write(model, "a", options).text;
  EXPECT_EQ(write(model, "a", options).text, one);
  options.sampling.seed = 2;
  EXPECT_NE(write(model, "a", options).text, one);
}

TEST_F(GeneratorTest, an_empty_prompt_is_an_error) {
  const auto model = byte_model();
  EXPECT_EQ(message_of<DataError>([&] { write(model, "", greedy(5)); }),
            "prompt: must have at least one token, got none");
  Generator generator(model);
  EXPECT_EQ(message_of<DataError>([&] { generator.next(); }), "generator: next() needs a prompt; call prompt() first");
  const TokenId beyond[] = {256};
  EXPECT_THROW(generator.prompt(beyond), RangeError);
}

TEST_F(GeneratorTest, a_model_with_a_nan_says_so) {
  auto model = byte_model();
  model.store().mutable_values()[0] = std::nanf("");
  EXPECT_EQ(message_of<NonFiniteError>([&] { write(model, "a", greedy(5)); }), "sampling: the logit of token 0 is nan");
}

// An untrained byte model draws invalid UTF-8, but no piece may end inside a character.
TEST_F(GeneratorTest, never_splits_a_character) {
  const auto model = byte_model();
  std::size_t longer = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    TextOptions options;
    options.tokens = 200, options.sampling.temperature = 3.0, options.sampling.seed = seed;
    const Written written = write(model, "\xc3\xa9\xe2\x82\xac\xf0\x9f\x99\x82", options);
    EXPECT_EQ(written.text.size(), 200u);  // no byte is lost or added
    std::size_t at = 0;
    for (const std::string& piece : written.pieces) {
      at += piece.size();
      longer += piece.size() > 1;
      // If a character continues here, the bytes before were not the beginning of a character.
      if (at < 200 && (static_cast<unsigned char>(written.text[at]) & 0xc0) == 0x80) {
        for (std::size_t begin = at - std::min<std::size_t>(at, 3); begin < at; ++begin) {
          const auto size = [&] {
            try {
              return files::utf8_character(written.text, begin).size_bytes;
            } catch (const DataError&) {
              return std::size_t{1};
            }
          }();
          EXPECT_LE(begin + size, at);
        }
      }
    }
  }
  EXPECT_GT(longer, 10u);
}

TEST_F(GeneratorTest, ends_before_the_stop_text_across_tokens) {
  const auto model = byte_model();
  const std::string whole = write(model, "a", greedy(60)).text;
  for (const std::size_t begin : {0u, 1u, 7u, 20u}) {
    for (const std::size_t length : {1u, 2u, 5u}) {
      TextOptions options = greedy(60);
      options.stop = whole.substr(begin, length);
      const Written written = write(model, "a", options);
      EXPECT_EQ(written.text, whole.substr(0, whole.find(options.stop)));
      // Text is passed on at once, except bytes that may be the beginning of a character.
      const auto end = static_cast<Index>(whole.find(options.stop) + length);
      EXPECT_GE(written.tokens, end);
      EXPECT_LE(written.tokens, end + 3);
    }
  }
  TextOptions never = greedy(60);
  never.stop = whole.substr(50) + "and no more";  // begins like the end of the text
  EXPECT_EQ(write(model, "a", never).text, whole);
}

TEST_F(GeneratorTest, ends_when_the_sink_has_had_enough) {
  const auto model = byte_model();
  const ByteTokenizer tokenizer;
  int pieces = 0;
  generate_text(model, tokenizer, "a", greedy(100), [&](std::string_view) { return ++pieces < 3; });
  EXPECT_EQ(pieces, 3);
}

TEST_F(GeneratorTest, a_const_model_serves_many) {
  const auto model = byte_model();
  const auto texts = [&](std::uint64_t first) {
    std::string all;
    for (std::uint64_t seed = first; seed < first + 5; ++seed) {
      TextOptions options;
      options.tokens = 50, options.sampling.seed = seed;
      all += write(model, "ab", options).text;
    }
    return all;
  };
  const std::string a = texts(1), b = texts(100);
  std::string in_thread;
  std::thread other([&] {
    const ThreadScope one(1);
    in_thread = texts(100);
  });
  EXPECT_EQ(texts(1), a);
  other.join();
  EXPECT_EQ(in_thread, b);
}

}  // namespace
}  // namespace handgrad
