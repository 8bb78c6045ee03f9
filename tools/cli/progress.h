#pragma once

#include <chrono>
#include <string>

#include "handgrad/train/trainer.h"

namespace handgrad::cli {

/// Shows a run as it goes: on a terminal a bar (step, loss, learning rate, tokens/s, time left) that is drawn over, in a
/// pipe a line a logged step.
class Progress final : public TrainObserver {
 public:
  Progress(const Config& config, Index first_step, bool quiet);
  ~Progress() override;

  void on_step(const StepReport& report) override;
  void on_evaluation(const EvaluationReport& report) override;
  void on_save(const SaveReport& report) override;
  /// A line of its own, above the bar.
  void line(const std::string& text);

 private:
  std::string bar(const StepReport& report) const;
  void clear_bar();

  const Config& config_;
  Index first_step_;
  bool quiet_, terminal_, drawn_ = false;
  double smoothed_loss_ = 0.0;
  std::chrono::steady_clock::time_point started_, drawn_at_{};
  Index tokens_at_start_ = -1;
  std::chrono::steady_clock::time_point rate_started_;
};

/// "1:05:09", "2:31"
std::string clock_time(double seconds);

}  // namespace handgrad::cli
