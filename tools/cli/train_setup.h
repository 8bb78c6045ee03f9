#pragma once

#include <optional>
#include <string>
#include <vector>

#include "command.h"
#include "handgrad/train/trainer.h"

namespace handgrad::cli {

/// The arguments of `train`.
struct TrainRequest {
  std::string config_path;  // empty: the run's own
  std::vector<std::string> overrides;
  std::string out;
  std::string resume;  // "", "auto" or a path
  std::string init;
  bool overwrite = false;
  bool quiet = false;
};

/// Throws UsageError for options that exclude each other, and for a CONFIG that is missing or not a file.
TrainRequest read_train_request(const Values& values);

/// The run folder of a request.
std::string output_folder(const TrainRequest& request);

/// A run before its weights are made.
struct TrainPlan {
  Config config;  // resolved
  DataSource source;
  std::optional<Checkpoint> checkpoint;  // of the run to continue, or with the weights for a new run
  bool resumes = false;

  LoopState loop() const { return resumes ? checkpoint->loop() : LoopState{}; }
};

/// Reads config, checkpoint and text. Prints the differences from the stored run, and notes on checkpoints that were
/// passed over. Throws DataError if the folder must not be written to.
TrainPlan plan_training(const TrainRequest& request, const std::string& folder);

/// The trainer of a plan.
Trainer make_trainer(TrainPlan plan);

}  // namespace handgrad::cli
