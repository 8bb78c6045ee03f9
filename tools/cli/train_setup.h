#pragma once

#include <optional>
#include <string>
#include <vector>

#include "command.h"
#include "handgrad/train/trainer.h"

namespace handgrad::cli {

/// What `train` was asked for.
struct TrainRequest {
  std::string config_path;  // empty: the run's own
  std::vector<std::string> overrides;
  std::string out;
  std::string resume;  // "", "auto" or a path
  std::string init;
  bool overwrite = false;
  bool quiet = false;
};

/// Throws UsageError for options that exclude each other, and for a CONFIG that is missing or no file.
TrainRequest read_train_request(const cxxopts::ParseResult& values);

/// The run folder that a request means.
std::string output_folder(const TrainRequest& request);

/// A run that is about to begin or to go on: all that is known before its weights are made.
struct TrainPlan {
  Config config;  // resolved
  DataSource source;
  std::optional<Checkpoint> checkpoint;  // whose run goes on, or whose weights a new run begins with
  bool resumes = false;

  LoopState loop() const { return resumes ? checkpoint->loop() : LoopState{}; }
};

/// Reads config, checkpoint and text. Prints what changes against the stored run, and notes on checkpoints that were
/// passed over. Throws DataError where the folder must not be written to.
TrainPlan plan_training(const TrainRequest& request, const std::string& folder);

/// The trainer of a plan.
Trainer make_trainer(TrainPlan plan);

}  // namespace handgrad::cli
