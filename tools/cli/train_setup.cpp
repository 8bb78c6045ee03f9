#include "train_setup.h"

#include <fmt/format.h>

#include <cmath>
#include <filesystem>

#include "console.h"
#include "handgrad/checkpoint/run_folder.h"
#include "handgrad/config/describe.h"
#include "handgrad/config/fields.h"
#include "handgrad/config/parse.h"
#include "handgrad/config/resume.h"
#include "handgrad/config/validate.h"
#include "handgrad/core/errors.h"
#include "handgrad/files/file_system.h"

namespace handgrad::cli {
namespace {

namespace stdfs = std::filesystem;

// A run folder as CONFIG: with --resume auto it stands for the config in it.
void check_config_path(TrainRequest& request) {
  std::error_code error;
  if (!stdfs::is_directory(request.config_path, error)) return;
  if (!is_run_folder(request.config_path)) {
    throw UsageError(fmt::format("train: {}: is a directory; CONFIG must be a file", request.config_path));
  }
  if (request.resume != "auto") {
    throw UsageError(fmt::format("train: {}: is a run folder; handgrad train --resume {} continues it",
                                 request.config_path, request.config_path));
  }
  request.config_path += "/config.toml";
}

}  // namespace

TrainRequest read_train_request(const Values& values) {
  TrainRequest request;
  request.config_path = values.text("config");
  request.overrides = values.list("set");
  request.out = values.text("out");
  request.resume = values.text("resume");
  request.init = values.text("init");
  request.overwrite = values.given("overwrite");
  request.quiet = values.quiet();
  for (const char* option : {"out", "resume", "init"}) {
    if (values.given(option) && values.text(option).empty()) {
      throw UsageError(fmt::format("train: --{}: expected a path, got an empty value", option));
    }
  }
  if (!request.resume.empty() && (request.overwrite || !request.init.empty())) {
    throw UsageError("train: --resume continues a run; --init and --overwrite start a new one");
  }
  if (request.config_path.empty() && (request.resume.empty() || request.resume == "auto")) {
    throw UsageError("train: a CONFIG is needed (or --resume RUN); see handgrad train --help");
  }
  check_config_path(request);
  return request;
}

namespace {

// The run folder that a checkpoint path belongs to; empty if there is none.
std::string run_of(const std::string& path) {
  if (is_run_folder(path)) return path;
  const stdfs::path absolute =
      stdfs::absolute(path + "/.").lexically_normal().parent_path();  // without a slash at its end
  if (absolute.filename() == "checkpoints") return absolute.parent_path().string();
  const stdfs::path parent = absolute.parent_path();
  return parent.filename() == "checkpoints" ? parent.parent_path().string() : "";
}

// Can the name of a run folder be derived from the config's? Not from a pipe such as <(...) or /dev/stdin.
bool has_a_name(const std::string& config_path) {
  std::error_code error;
  return stdfs::is_regular_file(config_path, error) && !stdfs::path(config_path).stem().empty();
}

}  // namespace

std::string output_folder(const TrainRequest& request) {
  std::error_code error;
  if (!request.out.empty()) return request.out;
  if (!request.resume.empty() && request.resume != "auto") {
    if (!stdfs::exists(request.resume, error)) {
      throw DataError(fmt::format("train: --resume {}: no such file or directory", request.resume));
    }
    const std::string run = run_of(request.resume);
    if (!run.empty()) return run;
  }
  if (request.config_path.empty()) {
    throw UsageError(fmt::format("train: --out DIR is needed: {} is not in a run folder", request.resume));
  }
  if (stdfs::exists(request.config_path, error) && !has_a_name(request.config_path)) {
    throw UsageError(
        fmt::format("train: --out DIR is needed: {} has no name to derive a run folder from", request.config_path));
  }
  // DIR/config.toml is the same run as DIR.
  const stdfs::path config(request.config_path);
  const std::string beside = files::folder_of(request.config_path);
  if (config.filename() == "config.toml" && is_run_folder(beside)) return beside;
  return (stdfs::path("runs") / config.stem()).string();
}

namespace {

// Without CONFIG: the config of the resumed run, or the one stored in a checkpoint outside a run folder.
ParsedConfig read_config(const TrainRequest& request, const std::optional<Checkpoint>& checkpoint) {
  std::string path = request.config_path;
  if (path.empty()) path = run_of(request.resume) + "/config.toml";
  const bool stored = request.config_path.empty() && checkpoint && !stdfs::exists(path);
  ParsedConfig parsed = stored ? parse_config(to_toml(checkpoint->config()), checkpoint->path(), "/", request.overrides)
                               : load_config(path, request.overrides);
  if (request.init.empty()) validate(parsed.config, path);
  return parsed;
}

// With --init the model is that of the checkpoint, and keys of the config must not contradict it. Keys that change
// neither a tensor nor its meaning may differ.
Config with_model_of(const Checkpoint& checkpoint, const ParsedConfig& parsed) {
  const Config& config = parsed.config;
  Config merged = config;
  merged.model = checkpoint.config().model;
  merged.tokenizer = checkpoint.config().tokenizer;
  for (const char* key : {"model.dropout", "model.attention", "model.logits_budget_mb"}) {
    const config::Field& field = *config::find_field(key);
    if (parsed.given.contains(key)) field.set(merged, field.get(config));
  }
  for (const ConfigDifference& difference : resume_differences(merged, config)) {
    if (parsed.given.contains(difference.key)) {
      throw ConfigError(
          fmt::format("{}: {} is {} there, {} in the config; leave the key out to use the checkpoint's value",
                      checkpoint.path(), difference.key, difference.stored, difference.requested));
    }
  }
  validate(merged);
  return merged;
}

// Includes copies under other names, since a new run would erase their log.
bool holds_checkpoints(const std::string& folder) {
  if (!checkpoint_steps(folder).empty()) return true;
  const FoundCheckpoint newest = newest_checkpoint(folder);
  return newest.checkpoint || newest.has_unreadable;
}

// Refuses a folder that a new run must not write into.
void check_folder_is_free(const TrainRequest& request, const std::string& folder) {
  std::error_code error;
  if (!stdfs::exists(folder, error)) return;
  if (!stdfs::is_directory(folder, error)) throw DataError(fmt::format("{}: is not a directory", folder));
  if (stdfs::is_empty(folder, error)) return;
  if (!is_run_folder(folder)) {
    throw DataError(fmt::format("{}: contains other files, but no run; choose another folder with --out", folder));
  }
  if (request.resume.empty() && !request.overwrite && holds_checkpoints(folder)) {
    throw DataError(fmt::format(
        "{}: contains a run; --resume auto continues it, --out FOLDER starts another, --overwrite replaces it",
        folder));
  }
}

// Reading a long text takes some seconds.
void announce_reading(const Config& config, bool quiet) {
  constexpr Index long_text_bytes = 50'000'000;
  const Index bytes = size_of_texts(config.data.files) + size_of_texts(config.data.validation_files);
  if (!quiet && bytes >= long_text_bytes) say(fmt::format("reading {} MB of text\n", bytes / 1'000'000));
}

TrainPlan new_plan(const TrainRequest& request, const ParsedConfig& parsed) {
  announce_reading(parsed.config, request.quiet);
  if (request.init.empty()) {
    DataSource source = DataSource::load(parsed.config);
    return {complete_config(parsed.config, source.tokenizer().name(), source.tokenizer().vocab_size()),
            std::move(source), std::nullopt};
  }
  FoundCheckpoint found = find_checkpoint(request.init);
  note_passed_over(found.passed_over);
  const Config config = with_model_of(*found.checkpoint, parsed);
  DataSource source = DataSource::load(config, found.checkpoint->tokenizer());
  return {complete_config(config, source.tokenizer().name(), source.tokenizer().vocab_size()), std::move(source),
          std::move(found.checkpoint)};
}

// --resume auto: the newest checkpoint, or nothing if none has been saved yet. If checkpoints exist but none can be
// read, no new run is started, since they and the log may still be recovered.
std::optional<Checkpoint> newest_of(const TrainRequest& request, const std::string& folder) {
  FoundCheckpoint newest = newest_checkpoint(folder);
  note_passed_over(newest.passed_over);
  if (!newest.checkpoint && newest.has_unreadable) {
    throw CheckpointError(fmt::format(
        "{}: none of its checkpoints can be read; handgrad inspect --reseal FILE accepts one that another program has "
        "edited; train --overwrite removes them and starts a new run",
        folder));
  }
  if (!newest.checkpoint && !request.quiet) {
    say(fmt::format("{}: no checkpoint yet; starting at step 0\n",
                    stdfs::absolute(folder).lexically_normal().string()));
  }
  return std::move(newest.checkpoint);
}

std::optional<Checkpoint> checkpoint_to_resume(const TrainRequest& request, const std::string& folder) {
  if (request.resume == "auto") return newest_of(request, folder);
  FoundCheckpoint found = find_checkpoint(request.resume);
  note_passed_over(found.passed_over);
  std::error_code error;
  if (!stdfs::equivalent(run_of(request.resume), folder, error)) {
    check_folder_is_free(request, folder);
    if (!checkpoint_steps(folder).empty()) {
      throw DataError(
          fmt::format("{}: contains another run than the one to resume; choose another folder with --out", folder));
    }
  } else if (!stdfs::equivalent(request.resume, folder, error)) {
    const FoundCheckpoint newest = newest_checkpoint(folder);
    if (newest.checkpoint && newest.checkpoint->loop().step > found.checkpoint->loop().step) {
      throw DataError(
          fmt::format("{}: contains a later checkpoint (step {}) than the one to resume (step {}); handgrad train "
                      "--resume {} --out DIR continues from the earlier one in another folder",
                      folder, newest.checkpoint->loop().step, found.checkpoint->loop().step, request.resume));
    }
  }
  return std::move(found.checkpoint);
}

// A schedule over more steps raises a rate that had already fallen.
void print_rate_change(const Config& before, const Config& after, Index step) {
  const double then = learning_rate(before, step), now = learning_rate(after, step);
  if (std::abs(now - then) <= 1e-3 * then) return;  // equal as printed
  say(fmt::format("learning rate of the next update: {:.3e} -> {:.3e}", then, now));
  const bool follows_steps = after.schedule.kind != ScheduleKind::constant;
  if (now > then && then > 0.0 && follows_steps && before.train.steps != after.train.steps) {
    say(fmt::format(
        " (the schedule now ends at step {}; --set schedule.kind=constant --set optimizer.lr={:.3e} keeps the rate)",
        after.train.steps, then));
  }
  say("\n");
}

void print_changes(const Checkpoint& checkpoint, const Config& requested) {
  const Config& before = checkpoint.config();
  for (const ConfigDifference& d : check_resume(before, requested, checkpoint.loop().step)) {
    say(fmt::format("{}: {} -> {}\n", d.key, d.stored, d.requested));
  }
  print_rate_change(before, requested, checkpoint.loop().step);
}

// The same config, seed and data give the same bits only with the same matrix products.
void note_numerics(const Checkpoint& checkpoint) {
  const Numerics then = checkpoint.numerics(), now = this_numerics();
  const auto described = [](const Numerics& n) {
    return fmt::format("numerics {}, {}{}", n.version, n.gemm, n.instructions.empty() ? "" : " with " + n.instructions);
  };
  const bool same = then.version == now.version && then.gemm == now.gemm &&
                    (then.instructions.empty() || then.instructions == now.instructions);
  if (same) return;
  note(fmt::format(
      "note: the checkpoint was computed with {}, this program uses {}: the run continues, but its bits will "
      "differ from those of the uninterrupted run",
      described(then), described(now)));
}

TrainPlan resumed_plan(Checkpoint checkpoint, const Config& requested, bool quiet) {
  announce_reading(requested, quiet);
  DataSource source = DataSource::load(requested, checkpoint.tokenizer());
  const Config config = complete_config(requested, source.tokenizer().name(), source.tokenizer().vocab_size());
  if (!quiet) print_changes(checkpoint, config);
  note_numerics(checkpoint);
  return {config, std::move(source), std::move(checkpoint), true};
}

}  // namespace

TrainPlan plan_training(const TrainRequest& request, const std::string& folder) {
  if (request.resume.empty()) check_folder_is_free(request, folder);
  std::optional<Checkpoint> checkpoint;
  if (!request.resume.empty()) checkpoint = checkpoint_to_resume(request, folder);
  const ParsedConfig parsed = read_config(request, checkpoint);
  if (checkpoint) return resumed_plan(std::move(*checkpoint), parsed.config, request.quiet);
  if (request.resume == "auto") check_folder_is_free(request, folder);
  return new_plan(request, parsed);
}

Trainer make_trainer(TrainPlan plan) {
  if (!plan.checkpoint) return {plan.config, std::move(plan.source)};
  if (plan.resumes) return Trainer::resume(*plan.checkpoint, plan.config, std::move(plan.source));
  return Trainer::from_weights(*plan.checkpoint, plan.config, std::move(plan.source));
}

}  // namespace handgrad::cli
