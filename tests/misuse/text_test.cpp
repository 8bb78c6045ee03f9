#include <limits>

#include "handgrad/config/validate.h"
#include "handgrad/files/utf8.h"
#include "handgrad/generate/generator.h"
#include "handgrad/text/corpus.h"
#include "handgrad/text/windows.h"
#include "misuse/refusal.h"

namespace handgrad::misuse {
namespace {

const Covers covers{"generate/generator.h", "generate/sampling.h", "text/corpus.h",
                    "text/tokenizer.h",     "files/utf8.h",        "text/windows.h"};

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr float inf = std::numeric_limits<float>::infinity();

TEST(MisuseGenerate, sampling) {
  const std::vector<float> two{0.0f, 1.0f}, bad{0.0f, inf}, hidden{-inf, -inf};
  const std::vector<generate::Candidate> one{{0, 1.0}};
  EXPECT_REFUSED(RangeError, "sampling: the logits must not be empty", generate::candidates({}, {}));
  EXPECT_REFUSED(RangeError, "sampling: the logits must not be empty", sample_token({}, {}, 0));
  EXPECT_REFUSED(RangeError, "sampling: the candidates must not be empty", generate::draw({}, 0.5));
  EXPECT_REFUSED(RangeError, "sampling: u must be in [0, 1), got 1", generate::draw(one, 1.0));
  EXPECT_REFUSED(RangeError, "got nan", generate::draw(one, nan));
  EXPECT_REFUSED(RangeError, "got -0.5", generate::draw(one, -0.5));
  EXPECT_REFUSED(NonFiniteError, "sampling: the logit of token 1 is inf", generate::candidates(bad, {}));
  EXPECT_REFUSED(NonFiniteError, "sampling: every logit is -infinity", generate::candidates(hidden, {}));
  EXPECT_REFUSED(RangeError, "temperature: must be from 0 to 1e6, got nan", validate({.temperature = nan}));
  EXPECT_REFUSED(RangeError, "temperature:", generate::candidates(two, {.temperature = -1.0}));
  EXPECT_REFUSED(RangeError, "top-k: must be at least 0 (0: off), got -1", generate::candidates(two, {.top_k = -1}));
  EXPECT_REFUSED(RangeError, "top-p: must be from 0 to 1, got 1.5", generate::candidates(two, {.top_p = 1.5}));
}

TEST(MisuseGenerate, generator) {
  Config config;
  config.model.n_layers = 1, config.model.n_heads = 1, config.model.d_model = 4, config.model.vocab_size = 256;
  const CausalLm<float> model(resolve(config).model);
  EXPECT_REFUSED(RangeError, "temperature:", Generator(model, {.temperature = nan}));
  Generator generator(model);
  EXPECT_REFUSED(DataError, "generator: next() needs a prompt; call prompt() first", generator.next());
  EXPECT_REFUSED(DataError, "prompt: must have at least one token, got none", generator.prompt({}));
  EXPECT_REFUSED(RangeError, "embedding: id 256", generator.prompt(std::vector<TokenId>{256}));
  EXPECT_REFUSED(DataError, "generator: next() needs a prompt; call prompt() first", generator.next());
  EXPECT_TRUE(generator.logits().empty());
  const auto write = [](std::string_view) { return true; };
  const ByteTokenizer bytes;
  EXPECT_REFUSED(DataError, "prompt: must have at least one token, got none",
                 generate_text(model, bytes, "", {}, write));
  EXPECT_REFUSED(RangeError, "tokens: must be at least 0, got -1",
                 generate_text(model, bytes, "a", {.sampling = {}, .tokens = -1, .stop = ""}, write));
  EXPECT_REFUSED(Error, "generate_text: the sink must not be empty", generate_text(model, bytes, "a", {}, {}));
  EXPECT_REFUSED(RangeError, "the tokenizer must match the model, got 2 tokens for a vocabulary of 256",
                 generate_text(model, CharTokenizer::from_text("ab"), "a", {}, write));
  EXPECT_EQ(default_prompt(CharTokenizer::from_text("ab")), "a");
}

TEST(MisuseText, tokenizers) {
  const ByteTokenizer bytes;
  const CharTokenizer characters = CharTokenizer::from_text("ab");
  EXPECT_REFUSED(RangeError, "256", bytes.token_bytes(256));
  EXPECT_REFUSED(RangeError, "-1", bytes.token_bytes(-1));
  EXPECT_REFUSED(RangeError, "2", characters.token_bytes(2));
  EXPECT_REFUSED(RangeError, "7", characters.decode(std::vector<TokenId>{0, 7}));
  EXPECT_REFUSED(RangeError, "7", characters.size_bytes(std::vector<TokenId>{7}));
  EXPECT_REFUSED(DataError, "", characters.encode("abc"));
  EXPECT_REFUSED(DataError, "", CharTokenizer::from_text(""));
  EXPECT_REFUSED(DataError, "", CharTokenizer::from_text("\xff"));
  EXPECT_REFUSED(DataError, "", CharTokenizer(std::vector<std::uint32_t>{}));
  EXPECT_REFUSED(DataError, "", CharTokenizer(std::vector<std::uint32_t>{98, 97}));
  EXPECT_REFUSED(DataError, "", rebuild_tokenizer("", {}));
  EXPECT_REFUSED(DataError, "", rebuild_tokenizer("byte", {97}));
  EXPECT_REFUSED(DataError, "", make_char_tokenizer(""));
  EXPECT_TRUE(bytes.encode("").empty());
  EXPECT_EQ(bytes.decode({}), "");
}

TEST(MisuseText, utf8) {
  EXPECT_REFUSED(RangeError, "utf8_character: offset must be less than the size 0, got 0",
                 files::utf8_character("", 0));
  EXPECT_REFUSED(RangeError, "must be less than the size 1, got 9", files::utf8_character("a", 9));
  EXPECT_REFUSED(DataError, "invalid UTF-8 at byte offset 0", files::utf8_character("\xc3", 0));
  EXPECT_REFUSED(DataError, "notes.txt", files::check_utf8("a\xff", "notes.txt"));
  EXPECT_REFUSED(RangeError, "0xD800", files::utf8_bytes(0xD800));
  EXPECT_REFUSED(RangeError, "is not a code point", files::utf8_bytes(0xFFFFFFFF));
  EXPECT_FALSE(files::is_code_point(0x110000));
  EXPECT_FALSE(files::describe_character(0xFFFFFFFF).empty());
  files::check_utf8("", "");
  files::Utf8Stream stream;
  EXPECT_EQ(stream.push(""), "");
  EXPECT_EQ(stream.flush(), "");
}

TEST(MisuseText, corpus) {
  EXPECT_REFUSED(DataError, "", read_corpus({}));
  EXPECT_REFUSED(DataError, "", read_corpus(std::vector<std::string>{""}));
  EXPECT_REFUSED(DataError, "/no/such/file", read_corpus(std::vector<std::string>{"/no/such/file"}));
  EXPECT_REFUSED(DataError, "", read_corpus(std::vector<std::string>{"/dev/null"}));
  check_utf8(Corpus{});
}

TEST(MisuseText, windows) {
  const std::vector<TokenId> tokens(10, 1);
  std::vector<TokenId> four(4), three(3);
  EXPECT_REFUSED(RangeError, "validation fraction must be in [0, 1), got 1", split_by_fraction(tokens, 1.0, 2));
  EXPECT_REFUSED(RangeError, "got nan", split_by_fraction(tokens, nan, 2));
  EXPECT_REFUSED(RangeError, "", split_by_fraction(tokens, 0.5, 0));
  EXPECT_REFUSED(DataError, "too short", split_by_fraction({}, 0.5, 1));
  EXPECT_REFUSED(DataError, "too short", split_as_given(tokens, {}, 1));
  EXPECT_REFUSED(RangeError, "", split_as_given(tokens, tokens, -1));
  EXPECT_REFUSED(RangeError, "permutation: size must be at least 1", Permutation(0, 1, 0));
  EXPECT_REFUSED(RangeError, "epoch at least 0", Permutation(3, 1, -1));
  EXPECT_REFUSED(RangeError, "", Permutation(3, 1, 0)(3));
  EXPECT_REFUSED(RangeError, "", Permutation(3, 1, 0)(-1));
  EXPECT_REFUSED(RangeError, "", TokenWindows(tokens, 0, DataOrder::epoch, 1));
  EXPECT_REFUSED(DataError, "", TokenWindows(tokens, 10, DataOrder::epoch, 1));
  EXPECT_REFUSED(DataError, "", TokenWindows({}, 1, DataOrder::random, 1));
  const TokenWindows windows(tokens, 2, DataOrder::epoch, 1);
  EXPECT_REFUSED(RangeError, "", windows.start(-1));
  EXPECT_REFUSED(RangeError, "", windows.fill(-1, four, four));
  EXPECT_REFUSED(ShapeError, "", windows.fill(0, four, three));
  EXPECT_REFUSED(ShapeError, "", windows.fill(0, three, three));
  windows.fill(0, {}, {});
  EXPECT_REFUSED(RangeError, "", evaluation_starts(10, 0, 1));
  EXPECT_REFUSED(RangeError, "", evaluation_starts(10, 2, -1));
  EXPECT_REFUSED(DataError, "", evaluation_starts(-1, 2, 1));
  const std::vector<Index> late{8}, negative{-1}, first{0};
  EXPECT_REFUSED(RangeError, "", fill_windows(tokens, late, 4, four, four));
  EXPECT_REFUSED(RangeError, "", fill_windows(tokens, negative, 4, four, four));
  EXPECT_REFUSED(ShapeError, "", fill_windows(tokens, first, 4, three, three));
  EXPECT_REFUSED(RangeError, "", fill_windows(tokens, first, 0, {}, {}));
}

}  // namespace
}  // namespace handgrad::misuse
