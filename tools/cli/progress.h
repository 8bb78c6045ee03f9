#pragma once

#include <chrono>
#include <deque>
#include <string>

#include "handgrad/train/trainer.h"

namespace handgrad::cli {

/// Shows a run as it goes. On a terminal it draws a bar (step, loss, learning rate, tokens/s, time left) over itself.
/// In a pipe, and on a terminal that cannot draw over a line (TERM unset, dumb or emacs; NO_COLOR or INSIDE_EMACS set),
/// it prints a line per logged step, without any control character.
class Progress final : public TrainObserver {
 public:
  Progress(const Config& config, Index first_step, bool quiet);
  ~Progress() override;

  void on_step(const StepReport& report) override;
  void on_evaluating(Index done, Index total) override;
  void on_evaluation(const EvaluationReport& report) override;
  void on_save(const SaveReport& report) override;
  /// A line of its own, above the bar.
  void line(const std::string& text);
  /// Shows in the bar what the run does besides steps ("evaluating"), until the next step or busy(""). An evaluation
  /// that follows a step is shown without a call.
  void busy(const std::string& what);

 private:
  using Clock = std::chrono::steady_clock;

  // State at the end of a step: seconds spent in steps, tokens, steps.
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
  std::size_t drawn_columns_ = 0;  // 0: no bar is on the terminal
  Clock::time_point mark_, drawn_at_{};
  Index first_step_, saved_step_ = -1;
  double active_s_ = 0.0, other_s_ = 0.0;  // in steps; in evaluations, samples and saves
  std::deque<Sample> window_;              // the latest steps, from which rates are counted
  StepReport last_;
  double smoothed_loss_ = 0.0;
  bool has_loss_ = false;
  std::string busy_;
};

/// "1:05:09", "2:31"
std::string clock_time(double seconds);

}  // namespace handgrad::cli
