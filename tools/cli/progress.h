#pragma once

#include <chrono>
#include <deque>
#include <string>

#include "handgrad/train/trainer.h"

namespace handgrad::cli {

/// Shows the progress of a run. On a terminal it redraws a bar (step, loss, learning rate, tokens/s, time left). In a
/// pipe, and on a terminal that cannot overwrite a line (see terminal.h), it prints one line per logged step, without
/// control characters.
class Progress final : public TrainObserver {
 public:
  Progress(const Config& config, Index first_step, bool quiet);
  ~Progress() override;

  void on_step(const StepReport& report) override;
  void on_evaluating(Index done, Index total) override;
  void on_evaluation(const EvaluationReport& report) override;
  void on_save(const SaveReport& report) override;
  /// Prints a line above the bar.
  void line(const std::string& text);
  /// Shows an activity between steps ("writing a sample") in the bar, until the next step or busy(""). Evaluations are
  /// shown without a call.
  void busy(const std::string& what);

 private:
  using Clock = std::chrono::steady_clock;

  // Totals at the end of a step.
  struct Sample {
    double active_s = 0.0;
    Index tokens = 0, step = 0;
  };

  double since_mark();
  void record(const StepReport& report);
  bool is_pause(double step_s) const;
  bool evaluation_follows(Index step) const;
  std::string rate_text() const;
  std::string time_left() const;
  std::string bar(std::size_t room) const;
  void draw();
  std::string clearing() const;
  void clear_bar();
  void print_line(const std::string& text);

  const Config& config_;
  bool quiet_, draws_;
  std::size_t drawn_columns_ = 0;  // 0: no bar is shown
  Clock::time_point mark_, drawn_at_{};
  Index first_step_, saved_step_ = -1;
  double active_s_ = 0.0, other_s_ = 0.0;  // time in steps; in evaluations, samples and saves
  std::deque<Sample> window_;              // recent steps, for rates
  StepReport last_;
  double smoothed_loss_ = 0.0;
  bool has_loss_ = false;
  std::string busy_;
};

/// "1:05:09", "2:31"
std::string clock_time(double seconds);

}  // namespace handgrad::cli
