#include "handgrad/config/describe.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstdlib>
#include <limits>

#include "handgrad/config/fields.h"
#include "handgrad/config/parse.h"
#include "handgrad/config/validate.h"
#include "handgrad/core/random.h"
#include "handgrad/files/read_file.h"

namespace handgrad {
namespace {

// A config in which no field has its default value; the values differ from `round` to `round`.
Config scrambled(std::uint64_t round) {
  Config config;
  const Random random(round, Stream::audit);
  std::uint64_t counter = 0;
  for (const config::Field& field : config::fields()) {
    const std::uint64_t bits = random.bits(counter++);
    config::FieldValue value = field.get(config);
    if (field.type == config::FieldType::integer) {
      value = field.integers.lowest + static_cast<Index>(bits % static_cast<std::uint64_t>(field.integers.highest));
    } else if (field.type == config::FieldType::real) {
      const double share = 0.001 + 0.9 * random.uniform(counter++);
      value = field.reals.lowest + (field.reals.highest - field.reals.lowest) * share;
    } else if (field.type == config::FieldType::boolean) {
      value = !std::get<bool>(value);
    } else if (field.type == config::FieldType::choice) {
      value = field.choices[bits % field.choices.size()];
    } else if (field.type == config::FieldType::string) {
      value = std::string("a\"b\\c\n\r\t\x01\x7f \xc3\xa9 #");
    } else {
      value = std::vector<std::string>{"/a b", "/\"q\"", "/caf\xc3\xa9,x"};
    }
    field.set(config, value);
  }
  return config;
}

TEST(to_toml, reading_back_gives_the_same_bits) {
  for (std::uint64_t round = 0; round < 50; ++round) {
    const Config config = scrambled(round);
    const ParsedConfig again = parse_config(to_toml(config), "a.toml", "/");
    for (const config::Field& field : config::fields()) {
      EXPECT_EQ(field.get(config), field.get(again.config)) << field.key << "\n" << to_toml(config);
      EXPECT_TRUE(again.given.contains(field.key));
    }
  }
}

TEST(to_toml, small_and_large_numbers) {
  for (const double value : {5e-324, 2.2250738585072014e-308, 0.1, 1.0 / 3, 1e-8, 1e22, 123456789012345680.0}) {
    Config config;
    config.optimizer.lr = value;
    const std::string text = to_toml(config);
    const std::size_t at = text.find("\nlr = ") + 6;
    const std::string number = text.substr(at, text.find('\n', at) - at);
    EXPECT_EQ(std::bit_cast<std::uint64_t>(std::strtod(number.c_str(), nullptr)), std::bit_cast<std::uint64_t>(value))
        << number;
    if (value < 100) {
      EXPECT_EQ(parse_config(text, "a", "/").config.optimizer.lr, value) << number;
    }
  }
}

TEST(to_toml, the_resolved_copy_is_a_fixed_point) {
  const Config config = resolve(Config{});
  const std::string text = to_toml(config);
  EXPECT_EQ(to_toml(parse_config(text, "a", "/").config), text);
  EXPECT_NE(text.find("n_kv_heads = 4\n"), std::string::npos);
}

TEST(explain, tells_all_about_every_key) {
  const std::string text = explain_config();
  for (const config::Field& field : config::fields()) {
    EXPECT_NE(text.find("  " + std::string(field.name()) + " = " + config::to_toml(field.get(Config{})) + "\n      " +
                        field.help),
              std::string::npos)
        << field.key;
    EXPECT_FALSE(field.help.empty());
    EXPECT_EQ(field.help.find('\n'), std::string::npos);
    EXPECT_TRUE(config::accepts(field, field.get(Config{}))) << field.key;
  }
}

TEST(explain, the_page_in_docs_is_up_to_date) {
  EXPECT_EQ(files::read_file(HANDGRAD_SOURCE_DIR "/docs/config.md"), explain_config_markdown())
      << "docs/config.md is what `handgrad config explain --markdown` prints; write it anew";
}

TEST(nearest_name, takes_a_third_of_wrong_letters_at_most) {
  const std::vector<std::string> names = {"train", "generate", "eval"};
  EXPECT_EQ(config::nearest_name("trian", names), "train");
  EXPECT_EQ(config::nearest_name("genrate", names), "generate");
  EXPECT_EQ(config::nearest_name("evla", names), "eval");
  EXPECT_EQ(config::nearest_name("xyz", names), "");
  EXPECT_EQ(config::nearest_name("", names), "");
  EXPECT_EQ(config::nearest_name("train", {}), "");
  EXPECT_EQ(config::nearest_name(std::string(1000, 't'), names), "");
}

}  // namespace
}  // namespace handgrad
