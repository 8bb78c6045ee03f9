#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "command.h"
#include "handgrad/checkpoint/run_folder.h"
#include "handgrad/text/corpus.h"
#include "handgrad/train/data_source.h"
#include "handgrad/train/evaluate.h"

namespace handgrad::cli {
namespace {

// The whole of the given files, or else the validation part of what the model was trained on.
std::vector<TokenId> tokens_of(const Checkpoint& checkpoint, const std::vector<std::string>& paths) {
  if (!paths.empty()) {
    const Corpus corpus = read_corpus(paths);
    if (checkpoint.tokenizer()->name() == "char") check_utf8(corpus);  // names the file, too
    return checkpoint.tokenizer()->encode(corpus.text);
  }
  const DataSource source = DataSource::load(checkpoint.config(), checkpoint.tokenizer());
  if (source.fingerprint() != checkpoint.data_fingerprint()) {
    note("note: the text is no longer the one that the model was trained on");
  }
  return {source.validation().begin(), source.validation().end()};
}

}  // namespace

int run_eval(const Arguments& arguments) {
  cxxopts::Options options = make_options(
      "eval", "Loss, perplexity and bits per byte over a whole text, by default the validation part.", "CHECKPOINT");
  options.add_options()("data", "A text file or folder; may be repeated", cxxopts::value<std::vector<std::string>>(),
                        "FILE")("json", "Print one JSON object, or write it to FILE",
                                cxxopts::value<std::string>()->implicit_value(""),
                                "FILE")("checkpoint", "", cxxopts::value<std::string>());
  options.parse_positional({"checkpoint"});
  const Parsed parsed = parse(options, "eval", arguments);
  if (parsed.help) return done;
  const std::string path =
      required_argument(parsed.values, "checkpoint", "eval: a CHECKPOINT is needed; see handgrad eval --help");
  const ThreadScope scope(wanted_threads(parsed.values));
  const FoundCheckpoint found = find_checkpoint(path);
  for (const std::string& passed : found.passed_over) note("note: passed over " + passed);
  std::vector<std::string> paths;
  if (parsed.values.count("data") > 0) paths = parsed.values["data"].as<std::vector<std::string>>();
  const std::vector<TokenId> tokens = tokens_of(found.checkpoint, paths);
  const CausalLm<float> model = found.checkpoint.model<float>();
  const Evaluation result =
      evaluate_all(model, *found.checkpoint.tokenizer(), tokens, found.checkpoint.config().train.batch_size);
  if (parsed.values.count("json") == 0 || !parsed.values["json"].as<std::string>().empty()) {
    fmt::print("{}: step {}, {} tokens: loss {:.4f} nats a token, perplexity {:.3f}, {:.4f} bits per byte\n",
               found.checkpoint.path(), found.checkpoint.loop().step, result.tokens, result.loss, result.perplexity(),
               result.bits_per_byte);
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
  return done;
}

}  // namespace handgrad::cli
