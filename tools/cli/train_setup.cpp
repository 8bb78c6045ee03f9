#include "train_setup.h"

#include <fmt/format.h>

#include <cmath>
#include <filesystem>

#include "console.h"
#include "handgrad/checkpoint/run_folder.h"
#include "handgrad/config/describe.h"
#include "handgrad/config/parse.h"
#include "handgrad/config/resume.h"
#include "handgrad/config/validate.h"
#include "handgrad/core/errors.h"
#include "handgrad/files/file_system.h"

namespace handgrad::cli {
namespace {

namespace stdfs = std::filesystem;

// A run folder in the place of CONFIG: with --resume auto its config is meant.
void check_config_path(TrainRequest& request) {
  std::error_code error;
  if (!stdfs::is_directory(request.config_path, error)) return;
  if (!is_run_folder(request.config_path)) {
    throw UsageError(fmt::format("train: {}: it is a folder; CONFIG is a file", request.config_path));
  }
  if (request.resume != "auto") {
    throw UsageError(fmt::format("train: {}: it is a run; handgrad train --resume {} goes on with it",
                                 request.config_path, request.config_path));
  }
  request.config_path += "/config.toml";
}

}  // namespace

TrainRequest read_train_request(const cxxopts::ParseResult& values) {
  TrainRequest request;
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
  check_config_path(request);
  return request;
}

namespace {

// The run folder that a checkpoint path belongs to; empty if to none.
std::string run_of(const std::string& path) {
  if (is_run_folder(path)) return path;
  const stdfs::path absolute =
      stdfs::absolute(path + "/.").lexically_normal().parent_path();  // without a slash at its end
  if (absolute.filename() == "checkpoints") return absolute.parent_path().string();
  const stdfs::path parent = absolute.parent_path();
  return parent.filename() == "checkpoints" ? parent.parent_path().string() : "";
}

// A name to derive a run folder's from: that of a file, not of a pipe such as <(...) or /dev/stdin.
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
      throw DataError(fmt::format("train: --resume {}: there is no such file or folder", request.resume));
    }
    const std::string run = run_of(request.resume);
    if (!run.empty()) return run;
  }
  if (request.config_path.empty()) {
    throw UsageError(fmt::format("train: --out DIR is needed: {} is in no run folder", request.resume));
  }
  if (stdfs::exists(request.config_path, error) && !has_a_name(request.config_path)) {
    throw UsageError(fmt::format("train: --out DIR is needed: {} gives no name for a run", request.config_path));
  }
  // DIR/config.toml is the same run as DIR.
  const stdfs::path config(request.config_path);
  const std::string beside = files::folder_of(request.config_path);
  if (config.filename() == "config.toml" && is_run_folder(beside)) return beside;
  return (stdfs::path("runs") / config.stem()).string();
}

namespace {

// Without CONFIG, the config of the run that is resumed, or the one stored in a checkpoint that belongs to no run.
ParsedConfig read_config(const TrainRequest& request, const std::optional<Checkpoint>& checkpoint) {
  std::string path = request.config_path;
  if (path.empty()) path = run_of(request.resume) + "/config.toml";
  const bool stored = request.config_path.empty() && checkpoint && !stdfs::exists(path);
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

// Copies under other names count, too: beginning anew would cut off their log.
bool holds_checkpoints(const std::string& folder) {
  if (!checkpoint_steps(folder).empty()) return true;
  const NewestCheckpoint newest = newest_checkpoint(folder);
  return newest.checkpoint || newest.has_unreadable;
}

// Refuses a folder that a new run must not write into.
void check_folder_is_free(const TrainRequest& request, const std::string& folder) {
  std::error_code error;
  if (!stdfs::exists(folder, error)) return;
  if (!stdfs::is_directory(folder, error)) throw DataError(fmt::format("{}: it is not a folder", folder));
  if (stdfs::is_empty(folder, error)) return;
  if (!is_run_folder(folder)) {
    throw DataError(fmt::format("{}: holds other files and no run; choose another folder with --out", folder));
  }
  if (request.resume.empty() && !request.overwrite && holds_checkpoints(folder)) {
    throw DataError(fmt::format(
        "{}: holds a run; --resume auto goes on with it, --out FOLDER begins another, --overwrite replaces it",
        folder));
  }
}

void note_passed_over(const std::vector<std::string>& passed_over) {
  for (const std::string& passed : passed_over) note("note: passed over " + passed);
}

// A long text takes a while to read.
void announce_reading(const Config& config, bool quiet) {
  constexpr Index worth_a_word = 50'000'000;
  const Index bytes = size_of_texts(config.data.files) + size_of_texts(config.data.validation_files);
  if (!quiet && bytes >= worth_a_word) say(fmt::format("reading {} MB of text\n", bytes / 1'000'000));
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
  const Config config = with_model_of(found.checkpoint, parsed);
  DataSource source = DataSource::load(config, found.checkpoint.tokenizer());
  return {complete_config(config, source.tokenizer().name(), source.tokenizer().vocab_size()), std::move(source),
          std::move(found.checkpoint)};
}

// --resume auto: the newest checkpoint, or nothing where there has been no save yet. A run whose checkpoints are all
// unreadable is not begun anew: they, and its log, may still be recovered.
std::optional<Checkpoint> newest_of(const TrainRequest& request, const std::string& folder) {
  NewestCheckpoint newest = newest_checkpoint(folder);
  note_passed_over(newest.passed_over);
  if (!newest.checkpoint && newest.has_unreadable) {
    throw CheckpointError(fmt::format(
        "{}: none of its checkpoints can be read; handgrad inspect --reseal FILE accepts one that another program has "
        "edited; train --overwrite begins anew and removes them",
        folder));
  }
  if (!newest.checkpoint && !request.quiet) {
    say(fmt::format("{}: no checkpoint yet; beginning at step 0\n",
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
          fmt::format("{}: holds another run than the one to resume; choose another folder with --out", folder));
    }
  } else if (!stdfs::equivalent(request.resume, folder, error)) {
    const NewestCheckpoint newest = newest_checkpoint(folder);
    if (newest.checkpoint && newest.checkpoint->loop().step > found.checkpoint.loop().step) {
      throw DataError(
          fmt::format("{}: holds a later checkpoint (step {}) than the one to resume (step {}); handgrad train "
                      "--resume {} --out DIR goes on from that one in another folder",
                      folder, newest.checkpoint->loop().step, found.checkpoint.loop().step, request.resume));
    }
  }
  return std::move(found.checkpoint);
}

// A schedule that is stretched over more steps lifts a rate that had already fallen.
void print_rate_change(const Config& before, const Config& after, Index step) {
  const double then = learning_rate(before, step), now = learning_rate(after, step);
  if (std::abs(now - then) <= 1e-3 * then) return;  // as good as equal, and printed alike
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

// Same config, seed and data give the same bits only where the same products are computed.
void note_numerics(const Checkpoint& checkpoint) {
  const Numerics then = checkpoint.numerics(), now = this_numerics();
  const auto described = [](const Numerics& n) {
    return fmt::format("numerics {}, {}{}", n.version, n.gemm, n.instructions.empty() ? "" : " with " + n.instructions);
  };
  const bool same = then.version == now.version && then.gemm == now.gemm &&
                    (then.instructions.empty() || then.instructions == now.instructions);
  if (same) return;
  note(
      fmt::format("note: the checkpoint was computed by {}, and this is {}: the run goes on, but its bits will differ "
                  "from those of the unbroken run",
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
