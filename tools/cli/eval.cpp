#include <fmt/format.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>
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

namespace handgrad::cli {
namespace {

// "-" is standard input; a pipe or a device is read to its end, which training could not do again at a resume.
void append_stream(Corpus& corpus, const std::string& path) {
  const bool standard = path == "-";
  if (standard && isatty(STDIN_FILENO) == 1)
    note("note: the text is read from the terminal; Ctrl-D on a new line ends it");
  const std::string text =
      standard ? std::string(std::istreambuf_iterator<char>(std::cin), {}) : files::read_file(path);
  if (text.empty()) throw DataError(fmt::format("empty file: {}", standard ? "standard input" : path));
  corpus.text += text;
  corpus.files.push_back({standard ? "standard input" : path, static_cast<Index>(text.size())});
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

// Tokens to evaluate on, not copied out of what holds them.
struct Material {
  std::optional<DataSource> source;  // its validation part, or else:
  std::vector<TokenId> given;

  std::span<const TokenId> tokens() const { return source ? source->validation() : std::span(given); }
};

// The whole of the given files, or else the validation part of what the model was trained on.
Material material_of(const Checkpoint& checkpoint, const std::vector<std::string>& paths) {
  Material material;
  if (!paths.empty()) {
    check_memory_for_text(size_of_texts(paths));
    const Corpus corpus = read_texts(paths);
    if (checkpoint.tokenizer()->name() == "char") check_utf8(corpus);  // names the file, too
    material.given = encode_corpus(*checkpoint.tokenizer(), corpus, "--data");
    return material;
  }
  material.source = DataSource::load(checkpoint.config(), checkpoint.tokenizer());
  if (material.source->fingerprint() != checkpoint.data_fingerprint()) {
    note("note: the text is no longer the one that the model was trained on");
  }
  return material;
}

}  // namespace

int run_eval(const Arguments& arguments) {
  cxxopts::Options options = make_options(
      "eval", "Loss, perplexity and bits per byte over a whole text, by default the validation part.", "CHECKPOINT");
  options.add_options()("data",
                        "A text file or folder, a pipe, or - for standard input; may be repeated: the texts are joined",
                        cxxopts::value<std::vector<std::string>>(), "FILE")(
      "json", "Print one JSON object, or write it to FILE", cxxopts::value<std::string>()->implicit_value(""), "FILE")(
      "checkpoint", "", cxxopts::value<std::string>());
  options.parse_positional({"checkpoint"});
  const Parsed parsed = parse(options, "eval", arguments);
  if (parsed.help) return done;
  check_json(parsed.values);
  const std::string path =
      required_argument(parsed.values, "checkpoint", "eval: a CHECKPOINT is needed; see handgrad eval --help");
  const ThreadScope scope(wanted_threads(parsed.values));
  const FoundCheckpoint found = find_checkpoint(path);
  for (const std::string& passed : found.passed_over) note("note: passed over " + passed);
  std::vector<std::string> paths;
  if (parsed.values.count("data") > 0) paths = parsed.values["data"].as<std::vector<std::string>>();
  const Material material = material_of(found.checkpoint, paths);
  const CausalLm<float> model = found.checkpoint.model<float>();
  const Evaluation result =
      evaluate_all(model, *found.checkpoint.tokenizer(), material.tokens(), found.checkpoint.config().train.batch_size);
  if (parsed.values.count("json") == 0 || !parsed.values["json"].as<std::string>().empty()) {
    fmt::print("{}: step {}, {}: loss {:.4f} nats a token, perplexity {:.3f}, {:.4f} bits per byte\n",
               found.checkpoint.path(), found.checkpoint.loop().step, counted(result.tokens, "token"), result.loss,
               result.perplexity(), result.bits_per_byte);
  }
  if (parsed.values.count("json") > 0) {
    const nlohmann::ordered_json json = {{"checkpoint", found.checkpoint.path()},
                                         {"step", found.checkpoint.loop().step},
                                         {"tokens", result.tokens},
                                         {"loss", result.loss},
                                         {"perplexity", result.perplexity()},
                                         {"bits_per_byte", result.bits_per_byte}};
    write_json(parsed.values, json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  }
  if (!std::isfinite(result.loss)) {
    throw NonFiniteError(fmt::format("{}: the loss over {} is {}", found.checkpoint.path(),
                                     counted(result.tokens, "token"), std::isnan(result.loss) ? "nan" : "inf"));
  }
  return done;
}

}  // namespace handgrad::cli
