#include <fmt/format.h>

#include <cstdio>
#include <iostream>
#include <iterator>

#include "command.h"
#include "handgrad/checkpoint/run_folder.h"
#include "handgrad/core/files.h"
#include "handgrad/generate/generator.h"
#include "signals.h"

namespace handgrad::cli {
namespace {

std::string read_prompt(const cxxopts::ParseResult& values, const Tokenizer& tokenizer) {
  if (values.count("prompt") > 0 && values.count("prompt-file") > 0) {
    throw UsageError("generate: --prompt and --prompt-file exclude each other");
  }
  if (values.count("prompt") > 0) return values["prompt"].as<std::string>();
  if (values.count("prompt-file") == 0) return default_prompt(tokenizer);
  const std::string file = values["prompt-file"].as<std::string>();
  if (file != "-") return read_file(file);
  return {std::istreambuf_iterator<char>(std::cin), {}};
}

void check_prompt(const Tokenizer& tokenizer, const std::string& prompt) {
  try {
    tokenizer.encode(prompt);
  } catch (const DataError& error) {
    throw DataError(fmt::format("prompt: {}", error.what()));
  }
}

TextOptions read_options(const cxxopts::ParseResult& values) {
  TextOptions options;
  options.tokens = values["tokens"].as<Index>();
  options.sampling.temperature = values["temperature"].as<double>();
  options.sampling.top_k = values["top-k"].as<Index>();
  options.sampling.top_p = values["top-p"].as<double>();
  options.sampling.seed = values["seed"].as<std::uint64_t>();
  options.stop = values["stop"].as<std::string>();
  options.stop_at_context = values.count("stop-at-context") > 0;
  if (options.tokens < 0) throw RangeError(fmt::format("tokens: expected 0 or more, got {}", options.tokens));
  validate(options.sampling);
  return options;
}

// What a reader of the text cannot know; empty if there is nothing to say.
std::string remark_on(const TextReport& report, Index context) {
  std::string text;
  if (report.prompt_tokens_cropped > 0) {
    text = fmt::format("note: the prompt has {} tokens, the context holds {}: its first {} were left out",
                       report.prompt_tokens, context, report.prompt_tokens_cropped);
  }
  if (report.end == TextEnd::context_full) {
    text += text.empty() ? "note: " : "; ";
    text +=
        report.tokens == 0
            ? fmt::format("nothing was written, since the prompt fills the context of {} tokens (--stop-at-context)",
                          context)
            : fmt::format("the text ends because the context of {} tokens is full (--stop-at-context)", context);
  }
  return text;
}

}  // namespace

int run_generate(const Arguments& arguments) {
  cxxopts::Options options = make_options("generate", "Writes text with a trained model, as it comes.", "CHECKPOINT");
  options.add_options()("prompt", "Text to go on from, which is printed first (default: a line break)",
                        cxxopts::value<std::string>(), "TEXT")(
      "prompt-file", "The same from a file, or - for standard input; not printed", cxxopts::value<std::string>(),
      "FILE")("n,tokens", "At most so many tokens", cxxopts::value<Index>()->default_value("400"), "N")(
      "temperature", "0: always the likeliest token; 1: as the model says; higher: bolder",
      cxxopts::value<double>()->default_value("0.8"),
      "T")("top-k", "Only the k likeliest tokens; 0: all", cxxopts::value<Index>()->default_value("0"), "K")(
      "top-p", "Then the fewest of them that reach probability p together",
      cxxopts::value<double>()->default_value("1"),
      "P")("seed", "The same seed writes the same text", cxxopts::value<std::uint64_t>()->default_value("1"), "N")(
      "stop", "End before this text", cxxopts::value<std::string>()->default_value(""), "TEXT")(
      "stop-at-context", "End when the context is full, instead of forgetting its first half")(
      "checkpoint", "", cxxopts::value<std::string>());
  options.parse_positional({"checkpoint"});
  const Parsed parsed = parse(options, "generate", arguments);
  if (parsed.help) return done;
  const std::string path =
      required_argument(parsed.values, "checkpoint", "generate: a CHECKPOINT is needed; see handgrad generate --help");
  const TextOptions text = read_options(parsed.values);
  const ThreadScope scope(wanted_threads(parsed.values));
  const FoundCheckpoint found = find_checkpoint(path);
  const std::string prompt = read_prompt(parsed.values, *found.checkpoint.tokenizer());
  for (const std::string& passed : found.passed_over) note("note: passed over " + passed);
  const CausalLm<float> model = found.checkpoint.model<float>();
  const StopSignals signals;
  const bool with_prompt = parsed.values.count("prompt") > 0;
  check_prompt(*found.checkpoint.tokenizer(), prompt);  // before anything is printed
  if (with_prompt) fmt::print("{}", prompt);
  const TextReport report =
      generate_text(model, *found.checkpoint.tokenizer(), prompt, text, [](std::string_view piece) {
        std::fwrite(piece.data(), 1, piece.size(), stdout);
        return std::fflush(stdout) == 0 && StopSignals::received() == 0;
      });
  fmt::print("\n");
  const std::string remark = remark_on(report, model.config().context);
  if (!remark.empty() && parsed.values.count("quiet") == 0) note(remark);
  return StopSignals::received() == 0 ? 0 : 128 + StopSignals::received();
}

}  // namespace handgrad::cli
