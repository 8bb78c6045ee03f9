#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <optional>

#include "command.h"
#include "escape.h"
#include "handgrad/checkpoint/run_folder.h"
#include "handgrad/config/describe.h"
#include "handgrad/config/parse.h"
#include "handgrad/config/resume.h"
#include "handgrad/config/validate.h"
#include "handgrad/core/files.h"
#include "handgrad/core/gemm.h"
#include "handgrad/generate/generator.h"
#include "handgrad/train/run.h"
#include "progress.h"
#include "signals.h"

namespace handgrad::cli {
namespace {

namespace files = std::filesystem;

struct Request {
  std::string config_path;  // empty: the run's own
  std::vector<std::string> overrides;
  std::string out;
  std::string resume;  // "", "auto" or a path
  std::string init;
  bool overwrite = false;
  bool quiet = false;
};

Request read_request(const cxxopts::ParseResult& values) {
  Request request;
  if (values.count("config") > 0) request.config_path = values["config"].as<std::string>();
  if (values.count("set") > 0) request.overrides = values["set"].as<std::vector<std::string>>();
  if (values.count("out") > 0) request.out = values["out"].as<std::string>();
  if (values.count("resume") > 0) request.resume = values["resume"].as<std::string>();
  if (values.count("init") > 0) request.init = values["init"].as<std::string>();
  request.overwrite = values.count("overwrite") > 0;
  request.quiet = values.count("quiet") > 0;
  for (const char* option : {"out", "resume", "init"}) {
    if (values.count(option) > 0 && values[option].as<std::string>().empty()) {
      throw UsageError(fmt::format("train: --{}: expected a path, got nothing", option));
    }
  }
  if (!request.resume.empty() && (request.overwrite || !request.init.empty())) {
    throw UsageError("train: --resume goes on with a run; --init and --overwrite begin a new one");
  }
  if (request.config_path.empty() && (request.resume.empty() || request.resume == "auto")) {
    throw UsageError("train: a CONFIG is needed (or --resume RUN); see handgrad train --help");
  }
  return request;
}

// The run folder that a checkpoint path belongs to; empty if to none.
std::string run_of(const std::string& path) {
  if (is_run_folder(path)) return path;
  const files::path absolute =
      files::absolute(path + "/.").lexically_normal().parent_path();  // without a slash at its end
  if (absolute.filename() == "checkpoints") return absolute.parent_path().string();
  const files::path parent = absolute.parent_path();
  return parent.filename() == "checkpoints" ? parent.parent_path().string() : "";
}

std::string output_folder(const Request& request) {
  if (!request.out.empty()) return request.out;
  if (!request.resume.empty() && request.resume != "auto") {
    const std::string run = run_of(request.resume);
    if (!run.empty()) return run;
  }
  if (request.config_path.empty())
    throw UsageError("train: --out DIR is needed, since the checkpoint lies in no run folder");
  // DIR/config.toml is the same run as DIR.
  const files::path config(request.config_path);
  const std::string beside = folder_of(request.config_path);
  if (config.filename() == "config.toml" && is_run_folder(beside)) return beside;
  return (files::path("runs") / config.stem()).string();
}

// Without a CONFIG that of the run which is gone on with, or of the checkpoint itself if that lies in no run.
ParsedConfig read_config(const Request& request, const std::optional<Checkpoint>& checkpoint) {
  std::string path = request.config_path;
  if (path.empty()) path = run_of(request.resume) + "/config.toml";
  const bool stored = request.config_path.empty() && checkpoint && !files::exists(path);
  ParsedConfig parsed = stored ? parse_config(to_toml(checkpoint->config()), checkpoint->path(), "/", request.overrides)
                               : load_config(path, request.overrides);
  if (request.init.empty()) validate(parsed.config, path);
  return parsed;
}

// With --init the model is the checkpoint's; what the config says of it must not contradict. Keys that change no tensor
// and no meaning of one may differ.
Config with_model_of(const Checkpoint& checkpoint, const ParsedConfig& parsed) {
  Config config = parsed.config;
  Config merged = config;
  merged.model = checkpoint.config().model;
  merged.tokenizer = checkpoint.config().tokenizer;
  for (const auto& [key, take] : std::initializer_list<std::pair<const char*, void (*)(Config&, const Config&)>>{
           {"model.dropout", [](Config&to, const Config&from) { to.model.dropout = from.model.dropout; }},
           {"model.attention", [](Config&to, const Config&from) { to.model.attention = from.model.attention; }},
           {"model.logits_budget_mb",
            [](Config&to, const Config&from) { to.model.logits_budget_mb = from.model.logits_budget_mb; }}}) {
    if (parsed.given.count(key) > 0) take(merged, config);
  }
  for (const ConfigDifference& difference : resume_differences(merged, config)) {
    if (parsed.given.count(difference.key) > 0) {
      throw ConfigError(fmt::format("{}: {} is {} there, {} in the config; leave the key out to take the checkpoint's",
                                    checkpoint.path(), difference.key, difference.stored, difference.requested));
    }
  }
  validate(merged);
  return merged;
}

// Refuses a folder that a new run must not write into.
void check_folder_is_free(const Request& request, const std::string& folder) {
  std::error_code error;
  if (!files::exists(folder, error)) return;
  if (!files::is_directory(folder, error)) throw DataError(fmt::format("{}: is no folder", folder));
  if (files::is_empty(folder, error)) return;
  if (!is_run_folder(folder)) {
    throw DataError(fmt::format("{}: holds other files and no run; choose another folder with --out", folder));
  }
  if (request.resume.empty() && !request.overwrite && !checkpoint_steps(folder).empty()) {
    throw DataError(fmt::format("{}: holds a run; --resume auto goes on with it, --overwrite begins anew", folder));
  }
}

Trainer<float> new_trainer(const Request& request, const ParsedConfig& parsed) {
  if (request.init.empty()) return Trainer<float>(parsed.config, DataSource::load(parsed.config));
  const FoundCheckpoint found = find_checkpoint(request.init);
  for (const std::string& passed : found.passed_over) note("note: passed over " + passed);
  const Config config = with_model_of(found.checkpoint, parsed);
  return Trainer<float>::from_weights(found.checkpoint, config, DataSource::load(config, found.checkpoint.tokenizer()));
}

std::optional<Checkpoint> checkpoint_to_resume(const Request& request, const std::string& folder) {
  if (request.resume == "auto") {
    NewestCheckpoint newest = newest_checkpoint(folder);
    for (const std::string& passed : newest.passed_over) note("note: passed over " + passed);
    if (!newest.checkpoint && !newest.passed_over.empty())
      note("note: no checkpoint is whole; starting from the beginning");
    return std::move(newest.checkpoint);
  }
  FoundCheckpoint found = find_checkpoint(request.resume);
  for (const std::string& passed : found.passed_over) note("note: passed over " + passed);
  const std::vector<Index> steps = checkpoint_steps(folder);
  std::error_code error;
  if (!files::equivalent(run_of(request.resume), folder, error)) {
    check_folder_is_free(request, folder);
    if (!steps.empty()) {
      throw DataError(
          fmt::format("{}: holds another run than the one to resume; choose another folder with --out", folder));
    }
  }
  if (request.resume != folder && !steps.empty() && steps.front() > found.checkpoint.loop().step) {
    throw DataError(
        fmt::format("{}: holds a later checkpoint (step {}) than the one to resume (step {}); choose another "
                    "folder with --out",
                    folder, steps.front(), found.checkpoint.loop().step));
  }
  return std::move(found.checkpoint);
}

Trainer<float> resumed_trainer(const Checkpoint& checkpoint, const Config& requested, bool quiet) {
  const Config before = checkpoint.config();
  DataSource source = DataSource::load(requested, checkpoint.tokenizer());
  if (!quiet) {
    for (const ConfigDifference& d :
         check_resume(before, completed(requested, source.tokenizer()), checkpoint.loop().step)) {
      fmt::print("{}: {} -> {}\n", d.key, d.stored, d.requested);
    }
  }
  return Trainer<float>::resume(checkpoint, requested, std::move(source));
}

void print_start(const Trainer<float>& trainer, const std::string& folder, int threads) {
  const Config& config = trainer.config();
  const Index parameters = trainer.model().store().scalar_count();
  fmt::print("{}: {} parameters, vocabulary {} ({}), {} training and {} validation tokens\n", folder, parameters,
             config.model.vocab_size, trainer.source().tokenizer().name(), trainer.source().train().size(),
             trainer.source().validation().size());
  fmt::print("{} thread{}, {}, seed {}, about {:.0f} MB of memory\n", threads, threads == 1 ? "" : "s",
             gemm_kernel_name(), config.train.seed,
             std::ceil(static_cast<double>(expected_memory_bytes(config, parameters)) / 1e6));
  for (const std::string& line : trainer.source().report()) fmt::print("{}\n", escaped(line));
  if (trainer.loop().step > 0) fmt::print("going on after step {}\n", trainer.loop().step);
  std::fflush(stdout);
}

// What samples begin with; an error before the first step, not at the first sample.
std::string sample_prompt(const Trainer<float>& trainer) {
  const std::string& prompt = trainer.config().sample.prompt;
  const Tokenizer& tokenizer = trainer.source().tokenizer();
  if (prompt == SampleConfig{}.prompt) return default_prompt(tokenizer);
  try {
    tokenizer.encode(prompt);
  } catch (const DataError& error) {
    throw DataError(fmt::format("sample.prompt: {}", error.what()));
  }
  return prompt;
}

// Text that the model writes, as one line; escapes keep it there.
std::string sample_line(const Trainer<float>& trainer) {
  const SampleConfig& sample = trainer.config().sample;
  std::string text;
  TextOptions options;
  options.tokens = sample.tokens;
  options.sampling.temperature = sample.temperature;
  options.sampling.seed = static_cast<std::uint64_t>(trainer.loop().step);
  generate_text(trainer.model(), trainer.source().tokenizer(), sample_prompt(trainer), options,
                [&](std::string_view piece) {
                  text += escaped(piece);
                  return true;
                });
  return fmt::format("step {}  sample: {}", trainer.loop().step, text);
}

int train(const Request& request, int threads) {
  const std::string folder = output_folder(request);
  if (request.resume.empty()) check_folder_is_free(request, folder);
  std::optional<Checkpoint> checkpoint;
  if (!request.resume.empty()) checkpoint = checkpoint_to_resume(request, folder);
  const ParsedConfig parsed = read_config(request, checkpoint);
  std::optional<Trainer<float>> trainer;
  if (checkpoint) {
    trainer.emplace(resumed_trainer(*checkpoint, parsed.config, request.quiet));
    checkpoint.reset();
  } else {
    if (request.resume == "auto") check_folder_is_free(request, folder);
    trainer.emplace(new_trainer(request, parsed));
  }
  if (trainer->done()) {
    if (!request.quiet)
      fmt::print("{}: finished at step {}; --set train.steps=N extends it\n", folder, trainer->loop().step);
    return done;
  }
  if (trainer->config().sample.every > 0) sample_prompt(*trainer);
  if (!request.quiet) print_start(*trainer, folder, threads);
  if (request.overwrite) clear_run_folder(posix_files(), folder);
  const StopSignals signals;
  Run run(std::move(*trainer), folder);
  Progress progress(run.trainer().config(), run.trainer().loop().step, request.quiet);
  run.trainer().observe(progress);
  const Index sample_every = run.trainer().config().sample.every;
  while (!run.done() && StopSignals::received() == 0) {
    const StepReport report = run.advance();
    if (sample_every > 0 && report.step % sample_every == 0) {
      progress.busy("writing a sample");
      const std::string sample = sample_line(run.trainer());
      progress.busy("");
      progress.line(sample);
    }
  }
  if (run.done()) {
    progress.line(fmt::format("finished at step {}; best validation loss {:.4f} at step {}", run.trainer().loop().step,
                              run.trainer().loop().best_loss, run.trainer().loop().best_step));
    return done;
  }
  run.save();
  progress.line(fmt::format("stopped after step {}; go on with: handgrad train --resume {}", run.trainer().loop().step,
                            run.folder()));
  return 128 + StopSignals::received();
}

}  // namespace

int run_train(const Arguments& arguments) {
  cxxopts::Options options = make_options("train", "Trains a model from a config file, in a run folder.", "[CONFIG]");
  options.add_options()("set", "Set a key of the config: model.dropout=0.1; may be repeated",
                        cxxopts::value<std::vector<std::string>>(), "KEY=VALUE")(
      "out", "Run folder (default: runs/<name of the config>)", cxxopts::value<std::string>(), "DIR")(
      "resume",
      "Go on with a run: auto (the run folder's newest checkpoint, or from the start), a run folder or a checkpoint",
      cxxopts::value<std::string>(), "auto|PATH")(
      "init", "Begin from a checkpoint's weights, tokenizer and model keys, with a fresh optimiser (fine-tuning)",
      cxxopts::value<std::string>(),
      "CHECKPOINT")("overwrite", "Replace the run that the folder holds")("config", "", cxxopts::value<std::string>());
  options.parse_positional({"config"});
  const Parsed parsed = parse(options, "train", arguments);
  if (parsed.help) return done;
  const int threads = wanted_threads(parsed.values);
  const ThreadScope scope(threads);
  return train(read_request(parsed.values), threads);
}

}  // namespace handgrad::cli
