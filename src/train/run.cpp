#include "handgrad/train/run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "core/math.h"
#include "handgrad/checkpoint/run_folder.h"
#include "handgrad/config/describe.h"
#include "handgrad/core/errors.h"
#include "handgrad/files/durable_write.h"
#include "handgrad/files/read_file.h"
#include "handgrad/files/run_lock.h"
#include "handgrad/io/container_writer.h"
#include "train/metrics_log.h"

namespace handgrad {
namespace {

// The operands of the operation at fault, for `handgrad inspect` and h5py.
void write_witnesses(FileSystem* fs, const std::string& path, const NonFiniteStep& failure) {
  const NonFiniteOrigin<float>& origin = *failure.origin();
  ContainerContents contents;
  for (const WitnessTensor<float>& w : origin.witnesses) {
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

// Another process may have continued the run after the checkpoint was read and before the folder was locked.
void refuse_later_checkpoints(const std::string& folder, Index step) {
  const std::vector<Index> steps = checkpoint_steps(folder);
  if (steps.empty() || steps.front() <= step) return;
  const FoundCheckpoint newest = newest_checkpoint(folder);
  if (!newest.checkpoint || newest.checkpoint->loop().step <= step) return;  // later files are damaged
  throw DataError(fmt::format(
      "{}: contains a later checkpoint (step {}) than that of this run (step {}); --resume auto continues from it",
      folder, newest.checkpoint->loop().step, step));
}

// An unchanged file is not rewritten, which would need space on the disk.
void write_config(FileSystem* fs, const std::string& path, const std::string& text) {
  std::error_code error;
  if (std::filesystem::is_regular_file(path, error) && files::read_file(path) == text) return;
  files::write_durably(fs, path, text);
}

void point_link(FileSystem* fs, const std::string& target_name, const std::string& link_path) {
  std::error_code error;
  if (std::filesystem::read_symlink(link_path, error) == target_name) return;
  files::replace_link(fs, target_name, link_path);
}

}  // namespace

Run::Run(Trainer trainer, const std::string& folder, FileSystem* fs)
    : trainer_(std::move(trainer)), folder_(folder), fs_(fs) {
  files::make_folders(fs_, folder_);
  lock_ = std::make_unique<files::RunLock>(folder_);
  files::make_folders(fs_, folder_ + "/checkpoints");
  refuse_later_checkpoints(folder_, trainer_.loop().step);
  files::remove_temporaries(fs_, folder_);
  files::remove_temporaries(fs_, folder_ + "/checkpoints");
  set_aside_ = set_aside_later_checkpoints(fs_, folder_, trainer_.loop().step);
  write_config(fs_, folder_ + "/config.toml", to_toml(trainer_.config()));
  log_ = std::make_unique<MetricsLog>(fs_, folder_ + "/metrics.jsonl", trainer_.loop());
  // A run that continues in another folder has no checkpoint there yet.
  std::error_code error;
  if (std::filesystem::exists(checkpoint_path(folder_, trainer_.loop().step), error)) {
    saved_step_ = trainer_.loop().step;
    saved_pending_ = trainer_.loop().evaluation_pending;
    update_links();  // a process may have been killed after it wrote the file and before it updated the links
  }
}

Run::Run(Run&&) noexcept = default;
Run::~Run() = default;

bool Run::done() const { return trainer_.done() && !trainer_.loop().evaluation_pending; }

std::optional<StepReport> Run::advance(std::stop_token stop) {
  if (trainer_.loop().evaluation_pending) {
    evaluate(stop);
    return std::nullopt;
  }
  const Config& config = trainer_.config();
  const StepReport report = guarded_step();
  const LoopState& loop = trainer_.loop();
  const bool last = report.step >= config.train.steps, evaluated = last || report.step % config.eval.every == 0;
  // If the evaluation of this step may end the run by patience, the step is logged like the last one.
  const bool perhaps_last =
      evaluated && config.eval.patience > 0 && loop.evaluations_since_best + 1 >= config.eval.patience;
  if (last || perhaps_last || report.skipped || report.step == 1 || report.step % config.log.every == 0) {
    log_->add(report);
  }
  log_->note(report);
  if (report.health) log_->add_health(report);
  // A due checkpoint is delayed while updates are skipped, since their weights are a poor state to continue from.
  save_due_ = save_due_ || report.step % config.checkpoint.every == 0;
  const bool saved = last || (save_due_ && !report.skipped);
  if (evaluated) {
    // An evaluation may take long, so a due checkpoint is written before it, and again with its result.
    trainer_.postpone_evaluation();
    if (saved) save();
    evaluate(stop);
  } else if (saved) {
    save();
  }
  return report;
}

void Run::evaluate(std::stop_token stop) {
  const EvaluationReport report = trainer_.evaluate([&](Index, Index) { return !stop.stop_requested(); });
  if (!report.validation.complete) return;
  log_->add(report);
  if (report.is_best || trainer_.done() || saved_step_ == report.step) save();
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
  if (saved_step_ == loop.step && saved_pending_ == loop.evaluation_pending) return;
  log_->sync();
  trainer_.save(checkpoint_path(folder_, loop.step), fs_);
  update_links();
  retain_checkpoints(fs_, folder_, trainer_.config().checkpoint.keep, loop);
  saved_step_ = loop.step;
  saved_pending_ = loop.evaluation_pending;
  save_due_ = false;
}

void Run::update_links() {
  const LoopState& loop = trainer_.loop();
  const std::string links = folder_ + "/checkpoints/";
  point_link(fs_, checkpoint_name(loop.step), links + "latest.h5");
  std::error_code error;
  const bool has_best =
      is_finite(loop.best_loss) && std::filesystem::exists(checkpoint_path(folder_, loop.best_step), error);
  if (has_best) point_link(fs_, checkpoint_name(loop.best_step), links + "best.h5");
}

void clear_run_folder(FileSystem* fs, const std::string& folder) {
  if (!is_run_folder(folder)) return;
  const files::RunLock lock(folder);
  // Links and checkpoints first: without them the folder cannot be resumed by mistake.
  for (const char* name : {"latest.h5", "best.h5"}) files::remove_file(fs, folder + "/checkpoints/" + name);
  for (const Index step : checkpoint_steps(folder)) files::remove_file(fs, checkpoint_path(folder, step));
  for (const char* name : {"metrics.jsonl", "config.toml"}) files::remove_file(fs, folder + "/" + name);
  for (const std::string& name : files::list_folder(fs, folder)) {
    if (name.starts_with("nonfinite-step-") && name.ends_with(".h5")) files::remove_file(fs, folder + "/" + name);
  }
}

}  // namespace handgrad
