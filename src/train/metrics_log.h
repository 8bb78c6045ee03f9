#pragma once

#include <chrono>
#include <string>

#include "handgrad/files/appender.h"
#include "handgrad/train/trainer.h"

namespace handgrad {

/// The file metrics.jsonl of a run: one JSON object per row.
///
/// Opening it for a resumed run removes the rows of work that will be repeated: rows of later steps, the evaluation of
/// this step if it is pending, and an incomplete last row. Other lines (comments, blank lines, rows without a step) are
/// kept. The elapsed time continues from the last row.
class MetricsLog {
 public:
  /// Throws DataError.
  MetricsLog(FileSystem* fs, const std::string& path, const LoopState& loop);

  /// Call it for every step. Rates exclude the first step of a session, which also allocates memory.
  void note(const StepReport& report);
  void add(const StepReport& report);
  void add_health(const StepReport& report);
  void add(const EvaluationReport& report);
  /// Makes all rows durable.
  void sync() { file_->sync(); }

 private:
  using Clock = std::chrono::steady_clock;

  std::unique_ptr<files::Appender> file_;
  double elapsed_before_s_ = 0.0;  // of earlier sessions
  Index tokens_ = 0;               // at the last row, or after the first step of the session
  bool warm_ = false;              // the first step has been noted
  Clock::time_point started_, logged_;
};

}  // namespace handgrad
