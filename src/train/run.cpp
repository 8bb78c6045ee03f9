#include "handgrad/train/run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/math.h"
#include "handgrad/checkpoint/run_folder.h"
#include "handgrad/config/describe.h"
#include "handgrad/core/errors.h"
#include "handgrad/io/container_writer.h"

namespace handgrad {
namespace {

using Json = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

// JSON has no NaN and no infinity: they become strings.
Json number(double x) {
  if (is_finite(x)) return x;
  return std::isnan(x) ? "nan" : x > 0 ? "inf" : "-inf";
}

double rounded(double x, double unit) { return std::round(x / unit) * unit; }

bool row_is_kept(std::string_view line, Index last_step) {
  const Json row = Json::parse(line, nullptr, false);
  return row.is_object() && row.contains("step") && row["step"].is_number_integer() &&
         row["step"].get<Index>() <= last_step;
}

// What the operation at fault had read, for `handgrad inspect` and h5py.
void write_witnesses(FileSystem* fs, const std::string& path, const NonFiniteStep& failure) {
  const NonFiniteOrigin& origin = *failure.origin();
  ContainerContents contents;
  for (const WitnessTensor& w : origin.witnesses) {
    std::string name = w.name;
    std::replace(name.begin(), name.end(), ' ', '_');
    const auto extents = w.values.shape().extents();
    contents.add<float>("/" + name, w.values.span(), {extents.begin(), extents.end()});
  }
  contents.add<std::int64_t>("/windows", failure.windows(), {static_cast<Index>(failure.windows().size())});
  contents.attributes = {{"/", "step", failure.step()},
                         {"/", "operation", origin.operation},
                         {"/", "scope", origin.scope},
                         {"/", "pass", std::string(origin.backward ? "backward" : "forward")},
                         {"/", "element", origin.element}};
  write_container(fs, path, contents);
}

// Between the reading of a checkpoint and the taking of the lock another process may have trained on.
void refuse_later_checkpoints(const std::string& folder, Index step) {
  const std::vector<Index> steps = checkpoint_steps(folder);
  if (steps.empty() || steps.front() <= step) return;
  const NewestCheckpoint newest = newest_checkpoint(folder);
  if (!newest.checkpoint || newest.checkpoint->loop().step <= step) return;  // the later ones are damaged
  throw DataError(
      fmt::format("{}: holds a later checkpoint (step {}) than this run's (step {}); --resume auto takes it", folder,
                  newest.checkpoint->loop().step, step));
}

}  // namespace

Run::Run(Trainer<float> trainer, const std::string& folder, FileSystem* fs)
    : trainer_(std::move(trainer)), folder_(folder), fs_(fs), started_(Clock::now()), logged_(started_) {
  make_folders(fs_, folder_);
  lock_ = std::make_unique<RunLock>(folder_);
  make_folders(fs_, folder_ + "/checkpoints");
  refuse_later_checkpoints(folder_, trainer_.loop().step);
  remove_temporaries(fs_, folder_);
  remove_temporaries(fs_, folder_ + "/checkpoints");
  write_durably(fs_, folder_ + "/config.toml", to_toml(trainer_.config()));
  metrics_ = std::make_unique<Appender>(fs_, folder_ + "/metrics.jsonl");
  if (metrics_->size_bytes() > 0) {
    const std::string rows = read_file(metrics_->path());
    metrics_->truncate(kept_prefix(rows, [&](std::string_view row) { return row_is_kept(row, trainer_.loop().step); }));
  }
  logged_tokens_ = trainer_.loop().tokens;
  // A run that goes on in another folder has nothing there yet.
  std::error_code error;
  if (std::filesystem::exists(checkpoint_path(folder_, trainer_.loop().step), error))
    saved_step_ = trainer_.loop().step;
}

StepReport Run::advance() {
  const Config& config = trainer_.config();
  const StepReport report = guarded_step();
  const bool last = report.step >= config.train.steps;
  const bool logged = last || report.skipped || report.step == 1 || report.step % config.log.every == 0;
  if (logged) log_step(report);
  if (report.health) log_health(report);
  bool best = false;
  if (last || report.step % config.eval.every == 0) {
    const EvaluationReport evaluation = trainer_.evaluate();
    log_evaluation(evaluation);
    best = evaluation.is_best;
    if (!logged && trainer_.done()) log_step(report);  // patience has run out: this was the last step
  }
  // Weights that give no finite update would be a poor place to go on from: a save that is due waits for one that do.
  save_due_ = save_due_ || report.step % config.checkpoint.every == 0;
  if (best || trainer_.done() || (save_due_ && !report.skipped)) save();
  return report;
}

StepReport Run::guarded_step() {
  try {
    return trainer_.step();
  } catch (const NonFiniteStep& failure) {
    if (!failure.origin()) throw;
    const std::string path = fmt::format("{}/nonfinite-step-{}.h5", folder_, failure.step());
    write_witnesses(fs_, path, failure);
    throw NonFiniteStep(fmt::format("{}; its inputs are in {}", failure.what(), path), failure.step(), failure.origin(),
                        failure.windows());
  }
}

void Run::save() {
  const LoopState& loop = trainer_.loop();
  if (saved_step_ == loop.step) return;
  metrics_->sync();
  trainer_.save(checkpoint_path(folder_, loop.step), fs_);
  const std::string links = folder_ + "/checkpoints/";
  replace_link(fs_, checkpoint_name(loop.step), links + "latest.h5");
  const bool best = loop.best_step == loop.step && is_finite(loop.best_loss);
  if (best) replace_link(fs_, checkpoint_name(loop.step), links + "best.h5");
  retain_checkpoints(fs_, folder_, trainer_.config().checkpoint.keep, loop);
  saved_step_ = loop.step;
  save_due_ = false;
}

void Run::log_step(const StepReport& report) {
  const double seconds = seconds_since(logged_);
  const double rate = seconds > 0 ? static_cast<double>(report.tokens - logged_tokens_) / seconds : 0.0;
  logged_ = Clock::now();
  logged_tokens_ = report.tokens;
  Json row;
  row["step"] = report.step;
  row["split"] = "train";
  row["loss"] = number(report.loss);
  row["lr"] = number(report.lr);
  row["grad_norm"] = number(report.grad_norm);
  row["tokens"] = report.tokens;
  if (report.skipped) row["skipped"] = true;
  row["tokens_per_s"] = rounded(rate, 1.0);
  row["elapsed_s"] = rounded(seconds_since(started_), 1e-3);
  metrics_->append(row.dump());
}

void Run::log_health(const StepReport& report) {
  Json row;
  row["step"] = report.step;
  row["split"] = "health";
  if (report.skipped) row["skipped"] = true;
  for (const auto& [name, value] : report.health->figures()) row[name] = number(value);
  metrics_->append(row.dump());
}

void Run::log_evaluation(const EvaluationReport& report) {
  Json row;
  row["step"] = report.step;
  row["split"] = "val";
  row["loss"] = number(report.validation.loss);
  row["bits_per_byte"] = number(report.validation.bits_per_byte);
  metrics_->append(row.dump());
}

void clear_run_folder(FileSystem* fs, const std::string& folder) {
  if (!is_run_folder(folder)) return;
  const RunLock lock(folder);
  // The links and files first: without them the folder is no run that could be resumed.
  for (const char* name : {"latest.h5", "best.h5"}) remove_file(fs, folder + "/checkpoints/" + name);
  for (const Index step : checkpoint_steps(folder)) remove_file(fs, checkpoint_path(folder, step));
  for (const char* name : {"metrics.jsonl", "config.toml"}) remove_file(fs, folder + "/" + name);
  for (const std::string& name : list_folder(fs, folder)) {
    if (name.starts_with("nonfinite-step-") && name.ends_with(".h5")) remove_file(fs, folder + "/" + name);
  }
}

}  // namespace handgrad
