#pragma once

#include <chrono>
#include <string>

#include "handgrad/files/appender.h"
#include "handgrad/train/trainer.h"

namespace handgrad {

/// A run's metrics.jsonl: one JSON object per row.
///
/// Opening it for a run that goes on removes the rows of updates that will be done again: those of later steps, the
/// evaluation of this step if it is still to come, and a last row that a killed process left unfinished. Lines of
/// other origin (comments, blank lines, rows without a step) stay where they are. Time goes on from the last row.
class MetricsLog {
 public:
  /// Throws DataError.
  MetricsLog(FileSystem* fs, const std::string& path, const LoopState& loop);

  /// Call for every step. The first of a session also takes memory and warms up: rates are counted from its end.
  void note(const StepReport& report);
  void add(const StepReport& report);
  void add_health(const StepReport& report);
  void add(const EvaluationReport& report);
  /// Makes all rows durable.
  void sync() { file_->sync(); }

 private:
  using Clock = std::chrono::steady_clock;

  std::unique_ptr<files::Appender> file_;
  double elapsed_before_s_ = 0.0;  // in earlier sessions
  Index tokens_ = 0;               // at the last row, or at the end of the session's first step
  bool warm_ = false;              // the first step has been noted
  Clock::time_point started_, logged_;
};

}  // namespace handgrad
