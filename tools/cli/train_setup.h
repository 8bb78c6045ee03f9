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

/// A new or resumed trainer. Prints what changes against the stored run, and notes on checkpoints that were passed
/// over. Throws DataError where the folder must not be written to.
Trainer<float> make_trainer(const TrainRequest& request, const std::string& folder);

}  // namespace handgrad::cli
