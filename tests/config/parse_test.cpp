#include "handgrad/config/parse.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <locale>

#include "config/values.h"
#include "handgrad/config/describe.h"
#include "handgrad/config/fields.h"
#include "handgrad/core/errors.h"
#include "handgrad/core/random.h"
#include "handgrad/files/durable_write.h"
#include "support/message.h"
#include "support/temporary_folder.h"

namespace handgrad {
namespace {

using test::message_of;
using test::TemporaryFolder;
using Strings = std::vector<std::string>;

Config parsed(std::string_view text, const Strings& overrides = {}) {
  return parse_config(text, "a.toml", "/base", overrides).config;
}

std::string refusal(std::string_view text, const Strings& overrides = {}) {
  return message_of<ConfigError>([&] { parsed(text, overrides); });
}

TEST(parse_config, nothing_given_is_all_defaults) {
  const ParsedConfig empty = parse_config("", "a.toml", "/base");
  EXPECT_EQ(to_toml(empty.config), to_toml(Config{}));
  EXPECT_TRUE(empty.given.empty());
}

TEST(parse_config, keys_of_every_type) {
  const Config c = parsed(R"(
train.steps = 12
[model]
n_layers = 3
bias = true
norm = "layer"
attention = "explicit"
[optimizer]
lr = 1
min_lr = 2.5e-4
[sample]
prompt = "Once"
)");
  EXPECT_EQ(c.train.steps, 12);
  EXPECT_EQ(c.model.n_layers, 3);
  EXPECT_TRUE(c.model.bias);
  EXPECT_EQ(c.model.norm, NormKind::layer);
  EXPECT_EQ(c.model.attention, AttentionKind::explicit_form);
  EXPECT_EQ(c.optimizer.lr, 1.0);
  EXPECT_EQ(c.optimizer.min_lr, 2.5e-4);
  EXPECT_EQ(c.sample.prompt, "Once");
}

TEST(parse_config, tells_given_keys_from_defaults) {
  const auto given = parse_config("[model]\nn_layers = 4\n", "a", "/", {"train.steps=3"}).given;
  EXPECT_EQ(given, (std::set<std::string>{"model.n_layers", "train.steps"}));
}

struct Refused {
  const char* text;
  const char* message;
};

TEST(parse_config, refusals_name_file_line_key_and_what_is_expected) {
  const Refused cases[] = {
      {"[model]\nn_layers = 2.0", "a.toml:2: model.n_layers: expected an integer from 1 to 1024, got 2.0; write 2"},
      {"[model]\nn_layers = \"2\"\n",
       "a.toml:2: model.n_layers: expected an integer from 1 to 1024, got \"2\"; write 2"},
      {"[model]\nn_layers = true\n", "a.toml:2: model.n_layers: expected an integer from 1 to 1024, got true"},
      {"[model]\nn_layers = [2]\n", "a.toml:2: model.n_layers: expected an integer from 1 to 1024, got a list with 2"},
      {"[model.n_layers]\nx=1\n", "a.toml:1: model.n_layers: expected an integer from 1 to 1024, got a table"},
      {"[model]\nn_layers = 2001-02-03\n",
       "a.toml:2: model.n_layers: expected an integer from 1 to 1024, got a date or time"},
      {"\n[optimizer]\n\nlr = \"3e-4\"\n",
       "a.toml:4: optimizer.lr: expected a number from 0 to 1000000000, got \"3e-4\"; write 0.0003"},
      {"[optimizer]\nlr = nan\n", "a.toml:2: optimizer.lr: expected a number from 0 to 1000000000, got nan"},
      {"[optimizer]\nlr = -inf\n", "a.toml:2: optimizer.lr: expected a number from 0 to 1000000000, got -inf"},
      {"[optimizer]\nlr = true\n", "a.toml:2: optimizer.lr: expected a number from 0 to 1000000000, got true"},
      {"[optimizer]\nbeta1 = 1\n", "a.toml:2: optimizer.beta1: expected a number of at least 0 and below 1, got 1"},
      {"[optimizer]\neps = 0\n", "a.toml:2: optimizer.eps: expected a number above 0 and at most 1, got 0"},
      {"[model]\ndropout = 1.5\n", "a.toml:2: model.dropout: expected a number of at least 0 and below 1, got 1.5"},
      {"[train]\nbatch_size = 0\n", "a.toml:2: train.batch_size: expected an integer from 1 to 65536, got 0"},
      {"[train]\nbatch_size = -4\n", "a.toml:2: train.batch_size: expected an integer from 1 to 65536, got -4"},
      {"[train]\nbatch_size = 99999999999\n",
       "a.toml:2: train.batch_size: expected an integer from 1 to 65536, got 99999999999"},
      {"[model]\nbias = 1\n", "a.toml:2: model.bias: expected true or false, got 1"},
      {"[model]\nnorm = \"batch\"\n", "a.toml:2: model.norm: expected one of \"rms\", \"layer\", got \"batch\""},
      {"[data]\nfiles = \"a.txt\"\n",
       "a.toml:2: data.files: expected a list of paths such as [\"a.txt\"], got \"a.txt\""},
      {"[data]\nfiles = [\"a\", 3]\n",
       "a.toml:2: data.files: expected a list of paths such as [\"a.txt\"], got a list with 3"},
      {"[data]\nfiles = [\"\"]\n",
       "a.toml:2: data.files: expected a list of paths such as [\"a.txt\"], got a list with \"\""},
      {"[sample]\nprompt = \"\"\n", "a.toml:2: sample.prompt: expected a string of at least one character, got \"\""},
      {"model = 3\n", "a.toml:1: model: expected a table, got 3"},
      {"[[model]]\nn_layers = 1\n", "a.toml:1: model: expected a table, got a list with a table"},
      {"[log]\nhealth_every = -1\n", "a.toml:2: log.health_every: expected an integer from 0 to 1000000000, got -1"},
      {"[log]\nhealth_every = true\n",
       "a.toml:2: log.health_every: expected an integer from 0 to 1000000000, got true"},
      {"format = 3\n", "a.toml:1: format: written by a newer handgrad: format 3, this one reads up to 2"},
      {"format = \"1\"\n", "a.toml:1: format: expected an integer from 1 to 2, got \"1\""},
  };
  for (const Refused& c : cases) EXPECT_EQ(refusal(c.text), c.message);
}

TEST(parse_config, unknown_keys_name_the_nearest_known_one) {
  const Refused cases[] = {
      {"[model]\nn_layer = 2\n", "a.toml:2: model.n_layer: unknown key; did you mean model.n_layers?"},
      {"[model]\nn_haeds = 2\n", "a.toml:2: model.n_haeds: unknown key; did you mean model.n_heads?"},
      {"[model]\nn_embd = 2\n", "a.toml:2: model.n_embd: unknown key; did you mean model.d_model?"},
      {"[optimizer]\nlearning_rat = 0.1\n",
       "a.toml:2: optimizer.learning_rat: unknown key; did you mean optimizer.lr?"},
      {"[train]\nlr = 0.1\n", "a.toml:2: train.lr: unknown key; did you mean optimizer.lr?"},
      {"n_layers = 2\n", "a.toml:1: n_layers: unknown key; did you mean model.n_layers?"},
      {"[log]\nfrobnicate = 2\n", "a.toml:2: log.frobnicate: unknown key; [log] has every, health_every"},
      {"[modle]\nn_layers = 2\n", "a.toml:1: [modle]: unknown table; did you mean [model]?"},
      {"[zzzzzzzz]\n",
       "a.toml:1: [zzzzzzzz]: unknown table; there are data, tokenizer, model, train, optimizer, schedule, eval, "
       "checkpoint, log, sample"},
      {"[model]\n\"a\\nb\\u001b\" = 2\n",
       "a.toml:2: model.a\\nb\\u001b: unknown key; [model] has n_layers, n_heads, n_kv_heads, d_model, d_ff, context, "
       "vocab_size, tie_embeddings, norm, norm_eps, feed_forward, position, bias, dropout, qk_norm, attention, "
       "rope_theta, rope_pairing, logits_budget_mb"},
  };
  for (const Refused& c : cases) EXPECT_EQ(refusal(c.text), c.message);
}

TEST(parse_config, every_key_finds_itself_through_a_slip) {
  for (const config::Field& field : config::fields()) {
    const std::string slip = field.table + "." + std::string(field.name()) + "q";
    EXPECT_NE(refusal("", {slip + "=1"}).find("did you mean " + field.key + "?"), std::string::npos) << slip;
  }
}

TEST(parse_config, the_first_problem_of_the_file_is_told) {
  EXPECT_EQ(refusal("[train]\nsteps = 0\n[model]\nn_layers = 0\n").substr(0, 9), "a.toml:2:");
  EXPECT_EQ(refusal("[model]\nn_layers = 0\n[train]\nsteps = 0\n").substr(0, 9), "a.toml:2:");
}

TEST(parse_config, malformed_text_names_the_line) {
  for (const char* text : {"[model]\nn_layers =\n", "[model\n", "a = \"x\n", "[model]\nlr = .1\n", "= 1",
                           "[model]\nn_layers"
                           " = 2\nn_layers = 3\n",
                           "[model]\n[model]\n", "x = \xff\n", "[a]\nb = 99999999999999999999\n"}) {
    const std::string message = refusal(text);
    EXPECT_EQ(message.substr(0, 7), "a.toml:") << message;
    EXPECT_NE(message.find(": malformed TOML: "), std::string::npos) << message;
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  }
  EXPECT_EQ(refusal("[model]\nn_layers = 2\nn_layers = 3\n").substr(0, 9), "a.toml:3:");
}

TEST(parse_config, line_endings_and_marks_do_not_matter) {
  EXPECT_EQ(parsed("[model]\r\nn_layers = 3\r\nbias = true").model.n_layers, 3);
  EXPECT_TRUE(parsed("[model]\r\nn_layers = 3\r\nbias = true").model.bias);
  EXPECT_EQ(parsed("\xef\xbb\xbf[model]\nn_layers = 3").model.n_layers, 3);
  EXPECT_EQ(refusal("[model]\r\nn_layers = 0\r\n").substr(0, 10), "a.toml:2: ");
}

TEST(parse_config, overrides_win) {
  const Config c = parsed("[model]\nn_layers = 3\n", {"model.n_layers=5", "sample.prompt=a, b=c", "optimizer.lr=1e-5",
                                                      "model.n_layers=6", "model.norm=layer", "eval.every = 7"});
  EXPECT_EQ(c.model.n_layers, 6);
  EXPECT_EQ(c.sample.prompt, "a, b=c");
  EXPECT_EQ(c.optimizer.lr, 1e-5);
  EXPECT_EQ(c.model.norm, NormKind::layer);
  EXPECT_EQ(parsed("", {"sample.prompt=\"1984\""}).sample.prompt, "1984");
  EXPECT_EQ(parsed("", {"sample.prompt=1\ntrain.steps=2"}).sample.prompt, "1\ntrain.steps=2");
  EXPECT_EQ(parsed("", {"data.files=[\"/a,b\", \"/c\"]"}).data.files, (Strings{"/a,b", "/c"}));
}

TEST(parse_config, refused_overrides_name_their_key) {
  const std::pair<const char*, const char*> cases[] = {
      {"model.n_layers=2.0", "--set model.n_layers: expected an integer from 1 to 1024, got 2.0; write 2"},
      {"model.n_layers=two", "--set model.n_layers: expected an integer from 1 to 1024, got \"two\""},
      {"model.n_layers=", "--set model.n_layers: expected an integer from 1 to 1024, got \"\""},
      {"model.n_layer=2", "--set model.n_layer: unknown key; did you mean model.n_layers?"},
      {"model.n_layers", "--set model.n_layers: expected KEY=VALUE"},
      {"=2", "--set =2: expected KEY=VALUE"},
      {"sample.prompt=\xff", "--set sample.prompt: expected a string of at least one character, got \"\xff\""},
      {"format=1", "--set format: unknown key"},
  };
  for (const auto& [text, message] : cases)
    EXPECT_EQ(refusal("", {text}).substr(0, std::string(message).size()), message);
}

TEST(parse_config, paths_become_absolute) {
  const std::string here = std::filesystem::current_path().string();
  EXPECT_EQ(parsed("data.files = [\"x/../t.txt\", \"/abs/d/\"]").data.files, (Strings{"/base/t.txt", "/abs/d"}));
  EXPECT_EQ(parsed("", {"data.files=[\"t.txt\"]"}).data.files, Strings{here + "/t.txt"});
  EXPECT_EQ(parse_config("data.files = [\"t.txt\"]", "a", "").config.data.files, Strings{here + "/t.txt"});
  EXPECT_EQ(parse_config("data.files = [\".\"]", "a", "sub").config.data.files, Strings{here + "/sub"});
}

TEST(load_config, reads_a_file_or_says_why_not) {
  const TemporaryFolder folder;
  files::write_durably(posix_files(), folder / "a.toml", std::string_view("[data]\nfiles = [\"t.txt\"]\n"));
  EXPECT_EQ(load_config(folder / "a.toml").config.data.files, Strings{folder / "t.txt"});
  EXPECT_EQ(message_of<ConfigError>([&] { load_config(folder / "b.toml"); }),
            "cannot read " + folder / "b.toml" + ": no such file or directory");
  EXPECT_EQ(message_of<ConfigError>([&] { load_config(folder.path()); }),
            "cannot read " + folder.path() + ": is a directory");
}

// A locale with a decimal comma and grouped digits. It is defined here, since the machine may have no such locale.
struct CommaPunctuation : std::numpunct<char> {
  char do_decimal_point() const override { return ','; }
  char do_thousands_sep() const override { return '.'; }
  std::string do_grouping() const override { return "\3"; }
};

TEST(parse_config, the_locale_does_not_matter) {
  const std::locale before = std::locale::global(std::locale(std::locale::classic(), new CommaPunctuation));
  Config config = parsed("optimizer.lr = 0.125\ntrain.steps = 12345\n");
  const std::string text = to_toml(config);
  const std::string message = refusal("train.batch_size = 1234567\n");
  std::locale::global(before);
  EXPECT_EQ(config.optimizer.lr, 0.125);
  EXPECT_EQ(config.train.steps, 12345);
  EXPECT_NE(text.find("lr = 0.125\n"), std::string::npos);
  EXPECT_NE(text.find("steps = 12345\n"), std::string::npos);
  EXPECT_NE(message.find("to 65536, got 1234567"), std::string::npos) << message;
}

TEST(parse_config, older_files_get_the_values_of_their_time) {
  std::vector<config::Field> table = {*config::find_field("model.qk_norm"), *config::find_field("model.n_layers")};
  table[0].since = 3;
  table[0].value_in_older_files.emplace(true);
  Config old;
  config::set_older_values(table, 2, {}, old);
  EXPECT_TRUE(old.model.qk_norm);
  Config given;
  config::set_older_values(table, 2, {"model.qk_norm"}, given);
  EXPECT_FALSE(given.model.qk_norm);
  Config current;
  config::set_older_values(table, 3, {}, current);
  EXPECT_FALSE(current.model.qk_norm);
}

// Random changes, deletions and repetitions of bytes: the result is a config or a ConfigError of one line.
TEST(parse_config, mutated_text_never_crashes) {
  const std::string whole = to_toml(Config{}) + "[extra]\nlist = [[1, 2], {a = 1979-05-27}]\ntext = \"\"\"a\nb\"\"\"\n";
  const Random random(2, Stream::audit);
  for (std::uint64_t round = 0; round < 3000; ++round) {
    std::string text = whole;
    for (std::uint64_t change = 0; change <= round % 5; ++change) {
      const std::uint64_t bits = random.bits(8 * round + change);
      const std::size_t at = (bits >> 16) % text.size();
      if (bits % 3 == 0) text[at] = static_cast<char>(bits >> 8);
      if (bits % 3 == 1) text.erase(at, 1 + (bits >> 8) % 8);
      if (bits % 3 == 2) text.insert(at, text.substr((bits >> 40) % text.size(), 1 + (bits >> 8) % 16));
    }
    try {
      parse_config(text, "a.toml", "/");
    } catch (const ConfigError& error) {
      EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << error.what();
    }
  }
}

TEST(values, edit_distance) {
  EXPECT_EQ(config::edit_distance("", "abc"), 3);
  EXPECT_EQ(config::edit_distance("kitten", "sitting"), 3);
  EXPECT_EQ(config::edit_distance("haeds", "heads"), 1);
}

TEST(values, long_texts_are_cut_between_characters) {
  std::string text(59, 'x');
  text += "\xc3\xa9 and more";
  EXPECT_EQ(config::excerpt(text), "\"" + std::string(59, 'x') + "\"...");
}

}  // namespace
}  // namespace handgrad
