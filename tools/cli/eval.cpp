#include <fmt/format.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <iostream>
#include <iterator>
#include <optional>
#include <span>

#include "command.h"
#include "handgrad/checkpoint/run_folder.h"
#include "handgrad/files/read_file.h"
#include "handgrad/text/corpus.h"
#include "handgrad/text/unknown_characters.h"
#include "handgrad/train/data_source.h"
#include "handgrad/train/evaluate.h"
#include "handgrad/train/memory.h"
#include "json.h"

namespace handgrad::cli {
namespace {

// Reads standard input ("-"), a pipe or a device to its end. Training refuses these: a resumed run could not read them
// again.
void append_stream(Corpus& corpus, const std::string& path) {
  const bool standard = path == "-";
  if (standard && isatty(STDIN_FILENO) == 1) {
    note("note: reading the text from the terminal; Ctrl-D on a new line ends it");
  }
  const std::string text =
      standard ? std::string(std::istreambuf_iterator<char>(std::cin), {}) : files::read_file(path);
  if (text.empty()) throw DataError(fmt::format("empty file: {}", standard ? "standard input" : path));
  corpus.text += text;
  corpus.files.push_back({standard ? "standard input" : path, std::ssize(text)});
}

Corpus read_texts(const std::vector<std::string>& paths) {
  Corpus all;
  for (const std::string& path : paths) {
    std::error_code error;
    const std::filesystem::file_type type = std::filesystem::status(path, error).type();
    if (path == "-" || type == std::filesystem::file_type::fifo || type == std::filesystem::file_type::character) {
      append_stream(all, path);
      continue;
    }
    Corpus one = read_corpus(std::vector{path});
    all.text += one.text;
    all.files.insert(all.files.end(), one.files.begin(), one.files.end());
  }
  return all;
}

// The tokens to evaluate on, and their owner.
struct Material {
  std::optional<DataSource> source;  // its validation part is evaluated; if empty:
  std::vector<TokenId> given;

  std::span<const TokenId> tokens() const { return source ? source->validation() : std::span(given); }
};

// All of the given files, or else the validation part of the training text.
Material material_of(const Checkpoint& checkpoint, const std::vector<std::string>& paths) {
  Material material;
  if (!paths.empty()) {
    check_memory_for_text(size_of_texts(paths));
    const Corpus corpus = read_texts(paths);
    if (checkpoint.tokenizer()->name() == "char") check_utf8(corpus);  // its error names the file
    material.given = encode_corpus(*checkpoint.tokenizer(), corpus, "--data");
    return material;
  }
  material.source = DataSource::load(checkpoint.config(), checkpoint.tokenizer());
  if (material.source->fingerprint() != checkpoint.data_fingerprint()) {
    note("note: the text has changed since the model was trained");
  }
  return material;
}

void print_result(const Checkpoint& checkpoint, const Evaluation& result) {
  fmt::print("{}: step {}, {}: loss {:.4f} nats per token, perplexity {:.3f}, {:.4f} bits per byte\n",
             checkpoint.path(), checkpoint.loop().step, counted(result.tokens, "token"), result.loss,
             result.perplexity(), result.bits_per_byte);
}

Json json_of(const Checkpoint& checkpoint, const Evaluation& result) {
  return {{"checkpoint", checkpoint.path()},   {"step", checkpoint.loop().step},
          {"tokens", result.tokens},           {"loss", result.loss},
          {"perplexity", result.perplexity()}, {"bits_per_byte", result.bits_per_byte}};
}

}  // namespace

int run_eval(const Arguments& arguments) {
  Options options("eval", "Loss, perplexity and bits per byte of a whole text, by default the validation part.",
                  "CHECKPOINT");
  options.list("data", "FILE",
               "A text file or folder, a pipe, or - for standard input; may be repeated: the texts are joined");
  options.json().positional({"checkpoint"});
  const Values values = options.parse(arguments);
  if (values.help()) return done;
  check_json(values);
  const std::string path = values.required("checkpoint", "eval: a CHECKPOINT is needed; see handgrad eval --help");
  const ThreadScope scope(wanted_threads(values));
  const FoundCheckpoint found = find_checkpoint(path);
  const Checkpoint& checkpoint = *found.checkpoint;
  note_passed_over(found.passed_over);
  const Material material = material_of(checkpoint, values.list("data"));
  const CausalLm<float> model = checkpoint.model<float>();
  const Evaluation result =
      evaluate_all(model, *checkpoint.tokenizer(), material.tokens(), checkpoint.config().train.batch_size);
  if (!prints_json(values)) print_result(checkpoint, result);
  write_json(values, json_of(checkpoint, result));
  if (!std::isfinite(result.loss)) {
    throw NonFiniteError(fmt::format("{}: the loss over {} is {}", checkpoint.path(), counted(result.tokens, "token"),
                                     std::isnan(result.loss) ? "nan" : "inf"));
  }
  return done;
}

}  // namespace handgrad::cli
