#include <gtest/gtest.h>

#include "support/command_line.h"

// Numbers and repeated options on the command line.

namespace handgrad {
namespace {

using test::CommandLine;
using test::Launch;
using test::Outcome;

class Numbers : public testing::Test {
 protected:
  void SetUp() override {
    line.prepare();
    ASSERT_EQ(line.run({"train", "tiny.toml", "--out", "run"}).exit_code, 0);
  }
  Outcome generate(std::vector<std::string> more) const {
    more.insert(more.begin(), {"generate", "run", "--prompt", "the "});
    return line.run(more);
  }
  void refused(const std::vector<std::string>& more, const std::string& message) const {
    const Outcome outcome = generate(more);
    SCOPED_TRACE(testing::PrintToString(more));
    EXPECT_EQ(outcome.exit_code, 2);
    EXPECT_EQ(outcome.out, "");
    EXPECT_EQ(outcome.err, "error: " + message + "\n");
  }
  CommandLine line;
};

TEST_F(Numbers, are_read_whole_or_refused) {
  const std::string number = "--temperature: expected a number from 0 to 1000000, got ",
                    count = "--tokens: expected an integer of at least 0, got ",
                    seed = "--seed: expected an integer from 0 to 18446744073709551615, got ";
  refused({"--temperature", "0,8"}, number + "\"0,8\"; the decimal separator is a point: 0.8");
  for (const char* text : {"5abc", "0.5x", "0x10", "nan", "inf", "", " 1", "1 ", "hot", "-1", "+1", "1e999", "1e7"}) {
    refused({std::string("--temperature=") + text}, number + "\"" + text + "\"");
  }
  refused({"--top-p", "0,9"},
          "--top-p: expected a number from 0 to 1, got \"0,9\"; the decimal separator is a point: 0.9");
  refused({"--top-p", "1.5"}, "--top-p: expected a number from 0 to 1, got \"1.5\"");
  for (const char* text : {"0x10", "-1", "ten", ""}) {
    refused({std::string("--top-k=") + text},
            "--top-k: expected an integer of at least 0, got \"" + std::string(text) + "\"");
  }
  refused({"-n", "1e9"}, count + "\"1e9\"; an integer has neither point nor exponent: 1000000000");
  refused({"-n", "5.7"}, count + "\"5.7\"");
  refused({"-n", "9223372036854775808"}, count + "\"9223372036854775808\"");
  for (const char* text : {"-1", "18446744073709551616", "0x1", ""}) {
    refused({std::string("--seed=") + text}, seed + "\"" + text + "\"");
  }
  refused({"--seed", "1e3"}, seed + "\"1e3\"; an integer has neither point nor exponent: 1000");
  refused({"--seed", "\x1b[31m"}, seed + "\"\\x1b[31m\"");
}

TEST_F(Numbers, have_one_meaning) {
  const auto text = [&](const std::vector<std::string>& more) {
    const Outcome outcome = generate(more);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    return outcome.out;
  };
  EXPECT_EQ(text({"--temperature", ".5"}), text({"--temperature", "0.5"}));
  EXPECT_EQ(text({"--temperature", "5e-1"}), text({"--temperature=0.50"}));
  EXPECT_NE(text({"--seed", "18446744073709551615"}), text({"--seed", "0"}));
  EXPECT_EQ(text({"-n", "0"}), "the \n");
}

// The decimal comma of many countries. If the locale is not installed, the program runs in the C locale.
TEST_F(Numbers, do_not_depend_on_the_locale) {
  Launch german;
  german.environment = {"LC_ALL=de_DE.UTF-8"};
  const std::vector<std::string> half = {"generate", "run", "--temperature", "0.5"};
  EXPECT_EQ(line.run(half, german).out, line.run(half).out);
  EXPECT_EQ(line.run({"generate", "run", "--temperature", "0,5"}, german).exit_code, 2);
}

TEST_F(Numbers, of_other_commands) {
  for (const std::vector<std::string>& arguments :
       std::vector<std::vector<std::string>>{{"bench", "tiny.toml", "--steps", "5x"},
                                             {"audit", "tiny.toml", "--entries", "0x10"},
                                             {"audit", "tiny.toml", "--entries", "0"},
                                             {"audit", "tiny.toml", "--tokens", "1e1"},
                                             {"audit", "tiny.toml", "--sequences", "2.0"},
                                             {"train", "tiny.toml", "--threads", "2,0"},
                                             {"eval", "run", "--threads", ""}}) {
    const Outcome outcome = line.run(arguments);
    EXPECT_EQ(outcome.exit_code, 2);
    EXPECT_EQ(outcome.err.find("error: " + arguments[2]), 0u) << outcome.err;
    EXPECT_NE(outcome.err.find("got \"" + arguments[3] + "\""), std::string::npos) << outcome.err;
  }
}

TEST_F(Numbers, in_configs_say_how_toml_writes_them) {
  const auto set = [&](const std::string& value) { return line.run({"train", "tiny.toml", "--set", value}).err; };
  EXPECT_EQ(set("optimizer.lr=.001"),
            "error: --set optimizer.lr: expected a number from 0 to 1000000000, got \".001\"; write 0.001\n");
  EXPECT_EQ(set("optimizer.lr=0,5"),
            "error: --set optimizer.lr: expected a number from 0 to 1000000000, got \"0,5\"; write 0.5\n");
  EXPECT_EQ(set("train.steps=1e2"),
            "error: --set train.steps: expected an integer from 1 to 1000000000, got 100.0; write 100\n");
  line.write("c.toml", "[optimizer]\nlr = .001  # small\n");
  EXPECT_EQ(
      line.run({"train", "c.toml"}).err,
      "error: c.toml:2: malformed TOML: expected decimal digit, saw '.'; a digit comes before the point: 0.001\n");
}

TEST_F(Numbers, an_option_of_one_value_is_given_once) {
  const std::string rule = ": one value is expected; see handgrad generate --help";
  refused({"--stop", "A", "--stop", "B"}, "generate: --stop is given twice, \"A\" and \"B\"" + rule);
  refused({"--seed", "1", "--seed=2"}, "generate: --seed is given twice, \"1\" and \"2\"" + rule);
  refused({"-n", "5", "--tokens", "6"}, "generate: --tokens is given twice, \"5\" and \"6\"" + rule);
  EXPECT_EQ(generate({"-q", "-q"}).exit_code, 0);
  EXPECT_EQ(line.run({"train", "tiny.toml", "--out", "a", "--out", "b"}).exit_code, 2);
  EXPECT_EQ(line.run({"eval", "run", "--data", "text.txt", "--data", "text.txt"}).exit_code, 0);
}

TEST_F(Numbers, a_value_may_begin_with_a_dash) {
  line.write("dash.txt", line.read("text.txt") + "-5 --tokens\n");
  ASSERT_EQ(line.run({"train", "tiny.toml", "--out", "dash", "--set", "data.files=[\"dash.txt\"]"}).exit_code, 0);
  for (const std::string prompt : {"-5", "--tokens"}) {
    const Outcome outcome = line.run({"generate", "dash", "-n", "0", "--prompt=" + prompt});
    EXPECT_EQ(outcome.out, prompt + "\n") << outcome.err;
  }
}

}  // namespace
}  // namespace handgrad
