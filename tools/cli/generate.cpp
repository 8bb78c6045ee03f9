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

std::string standard_input() {
  if (isatty(STDIN_FILENO) == 1) note("note: reading the prompt from the terminal; Ctrl-D on a new line ends it");
  return {std::istreambuf_iterator<char>(std::cin), {}};
}

// Removes the line break that an editor adds to a file of one line.
std::string without_final_line_break(std::string text) {
  const std::size_t end = text.find('\n');
  if (end == std::string::npos || end == 0 || end + 1 != text.size()) return text;
  text.pop_back();
  if (text.size() > 1 && text.back() == '\r') text.pop_back();
  return text;
}

std::string announced_default_prompt(const Tokenizer& tokenizer, bool quiet) {
  const std::string prompt = default_prompt(tokenizer);
  if (prompt != "\n" && !quiet) {
    note(fmt::format(
        "note: the vocabulary has no line break, the default prompt; the prompt is {} instead, and is not printed",
        files::describe_character(files::utf8_character(prompt, 0).code_point)));
  }
  return prompt;
}

std::string read_prompt(const Values& values, const Tokenizer& tokenizer) {
  if (values.given("prompt") && values.given("prompt-file")) {
    throw UsageError("generate: --prompt and --prompt-file exclude each other");
  }
  if (values.given("prompt")) return values.text("prompt");
  if (!values.given("prompt-file")) return announced_default_prompt(tokenizer, values.quiet());
  const std::string file = values.text("prompt-file");
  const std::string text = file == "-" ? standard_input() : files::read_file(file);
  if (tokenizer.name() == "char") {
    text::check_encoding(text, file == "-" ? "standard input" : file, file == "-" ? "" : file);
  }
  return without_final_line_break(text);
}

// Checks that the prompt can be encoded, and notes if it is longer than the context.
void check_prompt(const Tokenizer& tokenizer, const std::string& prompt, Index context, bool quiet) {
  Index count = 0;
  try {
    count = std::ssize(encode_text(tokenizer, prompt, "prompt"));
  } catch (const DataError& error) {
    const bool typed_escape = prompt.find("\\n") != std::string::npos || prompt.find("\\t") != std::string::npos;
    if (!typed_escape) throw;
    throw DataError(fmt::format("{}; a shell does not convert \\n to a line break; use $'...\\n...' or --prompt-file",
                                error.what()));
  }
  if (count > context && !quiet) {
    note(fmt::format("note: the prompt has {}, the context {}: the model reads the last {} only",
                     counted(count, "token"), context, context));
  }
}

TextOptions read_options(const Values& values) {
  constexpr Index most = std::numeric_limits<Index>::max();
  TextOptions options;
  options.tokens = read_integer("--tokens", values.text("tokens"), 0, most);
  options.sampling.temperature = read_number("--temperature", values.text("temperature"), 0.0, 1e6);
  options.sampling.top_k = read_integer("--top-k", values.text("top-k"), 0, most);
  options.sampling.top_p = read_number("--top-p", values.text("top-p"), 0.0, 1.0);
  options.sampling.seed = read_seed("--seed", values.text("seed"));
  options.stop = values.text("stop");
  options.stop_at_context = values.given("stop-at-context");
  validate(options.sampling);
  return options;
}

// Notes that a run has a checkpoint with a lower validation loss than the newest one.
void note_choice(const FoundCheckpoint& found, const std::string& path, bool quiet) {
  const LoopState& loop = found.checkpoint->loop();
  std::error_code error;
  const std::string best = files::folder_of(found.checkpoint->path()) + "/best.h5";
  if (quiet || loop.best_step <= 0 || loop.best_step == loop.step || !std::filesystem::is_directory(path, error) ||
      !std::filesystem::exists(best, error)) {
    return;
  }
  note(fmt::format("note: using the newest checkpoint, step {}; the lowest validation loss was at step {}: {}",
                   loop.step, loop.best_step, best));
}

// Writes generated text. It may contain any control sequence of the training text, and a terminal would execute it.
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

Options generate_options() {
  Options options("generate",
                  "Generates text with a trained model, token by token. Of a run folder the newest checkpoint is used; "
                  "RUN/checkpoints/best.h5 has the lowest validation loss.",
                  "CHECKPOINT");
  options.value(
      "prompt", "TEXT",
      "Text to continue; it is printed first (default: a line break). --prompt=-5 for a text that begins with "
      "a dash");
  options.value(
      "prompt-file", "FILE",
      "The same from a file, or - for standard input; not printed. The line break at the end of a file of one "
      "line is not part of the prompt");
  options.value("n,tokens", "N", "At most N tokens", "400");
  options.value("temperature", "T", "Divides the logits. 0: always the most likely token; above 1: more random", "0.8");
  options.value("top-k", "K", "Only the K most likely tokens; 0: all", "0");
  options.value("top-p", "P", "Then the fewest tokens whose probabilities sum to at least P", "1");
  options.value("seed", "N",
                "Another seed gives another text; the same seed gives the same text, with any number of threads", "1");
  options.value("stop", "TEXT", "End before this text", "");
  options.flag("stop-at-context", "End when the context is full, instead of dropping its first half");
  options.flag("raw",
               "Write control characters unchanged to a terminal, which executes them. By default they are shown as "
               "\\x1b and the like; files and pipes always get the exact bytes");
  options.positional({"checkpoint"});
  return options;
}

// A note if the text ended because the context is full; else empty.
std::string remark_on(const TextReport& report, Index context) {
  if (report.end != TextEnd::context_full) return "";
  if (report.tokens > 0) {
    return fmt::format("note: the text ends because the context of {} tokens is full (--stop-at-context)", context);
  }
  return fmt::format("note: nothing was generated: the prompt fills the context of {} tokens (--stop-at-context)",
                     context);
}

// Returns the exit code.
int write_text(const Checkpoint& checkpoint, const std::string& prompt, const TextOptions& text, const Values& values) {
  const CausalLm<float> model = checkpoint.model<float>();
  const Tokenizer& tokenizer = *checkpoint.tokenizer();
  const Index context = model.config().context;
  const StopRequest stop(StopRequest::Acknowledge::silently);
  check_prompt(tokenizer, prompt, context, values.quiet());  // before anything is printed
  const Output output(values.given("raw"));
  if (values.given("prompt")) output.write(prompt);
  const TextReport report = generate_text(model, tokenizer, prompt, text, [&](std::string_view piece) {
    return output.write(piece) && StopRequest::received() == 0;
  });
  fmt::print("\n");
  const std::string remark = remark_on(report, context);
  if (!remark.empty() && !values.quiet()) note(remark);
  return StopRequest::received() == 0 ? done : 128 + StopRequest::received();
}

}  // namespace

int run_generate(const Arguments& arguments) {
  const Values values = generate_options().parse(arguments);
  if (values.help()) return done;
  const std::string path =
      values.required("checkpoint", "generate: a CHECKPOINT is needed; see handgrad generate --help");
  const TextOptions text = read_options(values);
  const ThreadScope scope(wanted_threads(values));
  const FoundCheckpoint found = find_checkpoint(path);
  const std::string prompt = read_prompt(values, *found.checkpoint->tokenizer());
  note_passed_over(found.passed_over);
  note_choice(found, path, values.quiet());
  return write_text(*found.checkpoint, prompt, text, values);
}

}  // namespace handgrad::cli
