#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <iostream>
#include <iterator>
#include <limits>

#include "command.h"
#include "escape.h"
#include "handgrad/checkpoint/run_folder.h"
#include "handgrad/files/file_system.h"
#include "handgrad/files/read_file.h"
#include "handgrad/files/utf8.h"
#include "handgrad/generate/generator.h"
#include "handgrad/text/encoding_check.h"
#include "handgrad/text/unknown_characters.h"
#include "numbers.h"
#include "signals.h"

namespace handgrad::cli {
namespace {

bool is_quiet(const cxxopts::ParseResult& values) { return values.count("quiet") > 0; }

std::string standard_input() {
  if (isatty(STDIN_FILENO) == 1) note("note: the prompt is read from the terminal; Ctrl-D on a new line ends it");
  return {std::istreambuf_iterator<char>(std::cin), {}};
}

// The same prompt as typed: an editor ends a line, a prompt in one line is not meant to.
std::string without_final_line_break(std::string text) {
  const std::size_t end = text.find('\n');
  if (end == std::string::npos || end == 0 || end + 1 != text.size()) return text;
  text.pop_back();
  if (text.size() > 1 && text.back() == '\r') text.pop_back();
  return text;
}

std::string default_prompt_said(const Tokenizer& tokenizer, bool quiet) {
  const std::string prompt = default_prompt(tokenizer);
  if (prompt != "\n" && !quiet) {
    note(fmt::format(
        "note: the vocabulary has no line break to begin with; the text goes on from {}, which is not printed",
        files::describe_character(files::utf8_character(prompt, 0).code_point)));
  }
  return prompt;
}

std::string read_prompt(const cxxopts::ParseResult& values, const Tokenizer& tokenizer) {
  if (values.count("prompt") > 0 && values.count("prompt-file") > 0) {
    throw UsageError("generate: --prompt and --prompt-file exclude each other");
  }
  if (values.count("prompt") > 0) return values["prompt"].as<std::string>();
  if (values.count("prompt-file") == 0) return default_prompt_said(tokenizer, is_quiet(values));
  const std::string file = values["prompt-file"].as<std::string>();
  const std::string text = file == "-" ? standard_input() : files::read_file(file);
  if (tokenizer.name() == "char") check_encoding(text, file == "-" ? "standard input" : file, file == "-" ? "" : file);
  return without_final_line_break(text);
}

// Tokens of the prompt, before anything is printed.
std::vector<TokenId> encode_prompt(const Tokenizer& tokenizer, const std::string& prompt, Index context, bool quiet) {
  std::vector<TokenId> tokens;
  try {
    tokens = encode_text(tokenizer, prompt, "prompt");
  } catch (const DataError& error) {
    const bool typed_escape = prompt.find("\\n") != std::string::npos || prompt.find("\\t") != std::string::npos;
    if (!typed_escape) throw;
    throw DataError(fmt::format("{}; a shell does not turn \\n into a line break: $'...\\n...' does, or --prompt-file",
                                error.what()));
  }
  const auto count = static_cast<Index>(tokens.size());
  if (count > context && !quiet) {
    note(fmt::format("note: the prompt has {} and the context {}: the model reads the last {}", counted(count, "token"),
                     context, context));
  }
  return tokens;
}

TextOptions read_options(const cxxopts::ParseResult& values) {
  constexpr Index most = std::numeric_limits<Index>::max();
  const auto text = [&](const char* name) { return values[name].as<std::string>(); };
  TextOptions options;
  options.tokens = read_integer("--tokens", text("tokens"), 0, most);
  options.sampling.temperature = read_number("--temperature", text("temperature"), 0.0, 1e6);
  options.sampling.top_k = read_integer("--top-k", text("top-k"), 0, most);
  options.sampling.top_p = read_number("--top-p", text("top-p"), 0.0, 1.0);
  options.sampling.seed = read_seed("--seed", text("seed"));
  options.stop = text("stop");
  options.stop_at_context = values.count("stop-at-context") > 0;
  validate(options.sampling);
  return options;
}

// A run's newest checkpoint is not always its best.
void note_choice(const FoundCheckpoint& found, const std::string& path, bool quiet) {
  for (const std::string& passed : found.passed_over) note("note: passed over " + passed);
  const LoopState& loop = found.checkpoint.loop();
  std::error_code error;
  const std::string best = files::folder_of(found.checkpoint.path()) + "/best.h5";
  if (quiet || loop.best_step <= 0 || loop.best_step == loop.step || !std::filesystem::is_directory(path, error) ||
      !std::filesystem::exists(best, error)) {
    return;
  }
  note(fmt::format("note: step {}, the newest; the lowest validation loss was at step {}: {}", loop.step,
                   loop.best_step, best));
}

// Generated text may hold any control sequence that its training text held, and a terminal would execute it.
class Output {
 public:
  explicit Output(bool raw) : raw_(raw || isatty(STDOUT_FILENO) != 1) {}
  bool write(std::string_view text) const {
    const std::string shown = raw_ ? std::string(text) : escaped(text, Layout::lines);
    std::fwrite(shown.data(), 1, shown.size(), stdout);
    return std::fflush(stdout) == 0;
  }

 private:
  bool raw_;
};

cxxopts::Options generate_options() {
  using Text = std::string;
  cxxopts::Options options =
      make_options("generate",
                   "Writes text with a trained model, token by token. Of a run folder the newest checkpoint is taken; "
                   "RUN/checkpoints/best.h5 has the lowest validation loss.",
                   "CHECKPOINT");
  options.add_options()(
      "prompt",
      "Text to go on from, which is printed first (default: a line break); --prompt=-5 for one that begins "
      "with a dash",
      cxxopts::value<Text>(),
      "TEXT")("prompt-file",
              "The same from a file, or - for standard input; not printed. The line break that ends a file of "
              "one line is not part of the prompt",
              cxxopts::value<Text>(),
              "FILE")("n,tokens", "At most N tokens", cxxopts::value<Text>()->default_value("400"), "N")(
      "temperature", "0: always the likeliest token; 1: as the model says; higher: bolder",
      cxxopts::value<Text>()->default_value("0.8"),
      "T")("top-k", "Only the k likeliest tokens; 0: all", cxxopts::value<Text>()->default_value("0"), "K")(
      "top-p", "Then the fewest of them that reach probability p together", cxxopts::value<Text>()->default_value("1"),
      "P")("seed", "The same seed writes the same text, with any number of threads; another number writes another text",
           cxxopts::value<Text>()->default_value("1"),
           "N")("stop", "End before this text", cxxopts::value<Text>()->default_value(""), "TEXT")(
      "stop-at-context", "End when the context is full, instead of forgetting its first half")(
      "raw",
      "Show control characters of the text on a terminal, too, as they are: the terminal executes them. Without it "
      "they are shown as \\x1b and the like; files and pipes get the exact bytes always")("checkpoint", "",
                                                                                          cxxopts::value<Text>());
  options.parse_positional({"checkpoint"});
  return options;
}

// Why a text ends where the context is full; empty if it does not.
std::string remark_on(const TextReport& report, Index context) {
  if (report.end != TextEnd::context_full) return "";
  if (report.tokens > 0) {
    return fmt::format("note: the text ends because the context of {} tokens is full (--stop-at-context)", context);
  }
  return fmt::format("note: nothing was written, since the prompt fills the context of {} tokens (--stop-at-context)",
                     context);
}

}  // namespace

int run_generate(const Arguments& arguments) {
  cxxopts::Options options = generate_options();
  const Parsed parsed = parse(options, "generate", arguments);
  if (parsed.help) return done;
  const std::string path =
      required_argument(parsed.values, "checkpoint", "generate: a CHECKPOINT is needed; see handgrad generate --help");
  const TextOptions text = read_options(parsed.values);
  const ThreadScope scope(wanted_threads(parsed.values));
  const FoundCheckpoint found = find_checkpoint(path);
  const Tokenizer& tokenizer = *found.checkpoint.tokenizer();
  const std::string prompt = read_prompt(parsed.values, tokenizer);
  note_choice(found, path, is_quiet(parsed.values));
  const CausalLm<float> model = found.checkpoint.model<float>();
  const Index context = model.config().context;
  const StopRequest stop(StopRequest::Acknowledge::silently);
  encode_prompt(tokenizer, prompt, context, is_quiet(parsed.values));  // before anything is printed
  const Output output(parsed.values.count("raw") > 0);
  if (parsed.values.count("prompt") > 0) output.write(prompt);
  const TextReport report = generate_text(model, tokenizer, prompt, text, [&](std::string_view piece) {
    return output.write(piece) && StopRequest::received() == 0;
  });
  fmt::print("\n");
  const std::string remark = remark_on(report, context);
  if (!remark.empty() && !is_quiet(parsed.values)) note(remark);
  return StopRequest::received() == 0 ? 0 : 128 + StopRequest::received();
}

}  // namespace handgrad::cli
