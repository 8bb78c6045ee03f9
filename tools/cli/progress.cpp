#include "progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <vector>

#include "console.h"
#include "signals.h"
#include "terminal.h"

namespace handgrad::cli {
namespace {

constexpr std::size_t window_samples = 20;
constexpr double sample_interval_s = 0.1;
constexpr double redraw_interval_s = 0.1;
constexpr double shortest_pause_s = 1.0, pause_factor = 20.0;
constexpr std::size_t widest_bar = 30, narrowest_bar = 8;

// Read for every drawing, since the size of the window may change.
std::size_t terminal_width() {
  winsize size{};
  return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

// A part of the bar. If there is no room, parts of higher rank are dropped first.
struct Part {
  std::string text;
  int rank = 0;
};

std::size_t columns_of(const std::vector<Part>& parts) {
  std::size_t columns = 0;
  for (const Part& part : parts) columns += part.text.size() + (columns == 0 ? 0 : 2);
  return columns;
}

}  // namespace

std::string clock_time(double seconds) {
  const auto s = static_cast<Index>(std::max(0.0, seconds) + 0.5);
  return s >= 3600 ? fmt::format("{}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60)
                   : fmt::format("{}:{:02}", s / 60, s % 60);
}

Progress::Progress(const Config& config, Index first_step, bool quiet)
    : config_(config),
      quiet_(quiet),
      draws_(draws_over_lines(STDOUT_FILENO)),
      mark_(Clock::now()),
      first_step_(first_step) {}

Progress::~Progress() { clear_bar(); }

double Progress::since_mark() {
  const auto now = Clock::now();
  return std::chrono::duration<double>(now - std::exchange(mark_, now)).count();
}

// Rates are measured from the end of the first step, which also allocates memory and warms up.
void Progress::record(const StepReport& report) {
  const double spent = since_mark();
  if (!window_.empty() && !is_pause(spent)) active_s_ += spent;
  if (window_.size() < 2 || active_s_ - window_.back().active_s >= sample_interval_s) {
    window_.push_back({active_s_, report.tokens, report.step});
  }
  if (window_.size() > window_samples) window_.pop_front();
  last_ = report;
  if (report.skipped) return;
  smoothed_loss_ = has_loss_ ? 0.9 * smoothed_loss_ + 0.1 * report.loss : report.loss;
  has_loss_ = true;
}

// A step that takes many times as long as those before it contains a pause of the program or the machine.
bool Progress::is_pause(double step_s) const {
  const Index steps = last_.step - window_.front().step;
  if (steps < 1 || step_s < shortest_pause_s) return false;
  return step_s > pause_factor * (active_s_ - window_.front().active_s) / static_cast<double>(steps);
}

std::string Progress::rate_text() const {
  const double spent = active_s_ - window_.front().active_s;
  if (spent <= 0.0) return "";
  return fmt::format("{:.0f} tokens/s", static_cast<double>(last_.tokens - window_.front().tokens) / spent);
}

// The time per step is that of recent steps plus the average time between steps.
std::string Progress::time_left() const {
  const double spent = active_s_ - window_.front().active_s;
  const Index steps = last_.step - window_.front().step;
  if (steps < 1) return "";
  const double per_step =
      spent / static_cast<double>(steps) + other_s_ / static_cast<double>(std::max<Index>(1, last_.step - first_step_));
  return clock_time(per_step * static_cast<double>(config_.train.steps - last_.step)) + " left";
}

std::string Progress::bar(std::size_t room) const {
  std::vector<Part> parts = {{fmt::format("{}/{}", last_.step, config_.train.steps), 2},
                             {has_loss_ ? fmt::format("loss {:.4f}", smoothed_loss_) : "", 3},
                             {fmt::format("lr {:.2e}", last_.lr), 5},
                             {rate_text(), 4},
                             {busy_.empty() ? time_left() : busy_, 1}};
  std::erase_if(parts, [](const Part& part) { return part.text.empty(); });
  while (!parts.empty() && columns_of(parts) > room) {
    parts.erase(
        std::max_element(parts.begin(), parts.end(), [](const Part& a, const Part& b) { return a.rank < b.rank; }));
  }
  std::string text;
  for (const Part& part : parts) text += (text.empty() ? "" : "  ") + part.text;
  if (room < text.size() + narrowest_bar + 3) return text;
  const std::size_t width = std::min(widest_bar, room - text.size() - 3);
  const double share = static_cast<double>(last_.step) / static_cast<double>(config_.train.steps);
  const auto filled = static_cast<std::size_t>(std::clamp(share, 0.0, 1.0) * static_cast<double>(width));
  return fmt::format("[{}{}] {}", std::string(filled, '='), std::string(width - filled, ' '), text);
}

void Progress::draw() {
  if (quiet_ || !draws_ || window_.empty()) return;
  // The last column remains empty, since some terminals wrap when it is written.
  const std::string text = bar(terminal_width() - 1);
  say(clearing() + text);
  drawn_at_ = Clock::now();
  drawn_columns_ = text.size();
}

// If the window has become narrower, the bar occupies several lines.
std::string Progress::clearing() const {
  if (drawn_columns_ == 0) return "";
  const std::size_t lines_above = (drawn_columns_ - 1) / terminal_width();
  return fmt::format("\r{}\033[J", lines_above > 0 ? fmt::format("\033[{}A", lines_above) : "");
}

void Progress::clear_bar() {
  if (drawn_columns_ == 0) return;
  say(clearing());
  drawn_columns_ = 0;
}

void Progress::print_line(const std::string& text) {
  if (quiet_) return;
  clear_bar();
  say(text + "\n");
}

void Progress::line(const std::string& text) {
  print_line(text);
  if (!busy_.empty()) draw();
}

void Progress::busy(const std::string& what) {
  other_s_ += since_mark();
  busy_ = what;
  if (!busy_.empty()) draw();
}

bool Progress::evaluation_follows(Index step) const {
  return step % config_.eval.every == 0 || step == config_.train.steps;
}

void Progress::on_step(const StepReport& report) {
  busy_.clear();
  record(report);
  if (report.skipped) {
    line(fmt::format("step {}  skipped: loss {:.4g}, gradient norm {:.4g}", report.step, std::abs(report.loss),
                     std::abs(report.grad_norm)));  // neither is negative; the sign of a NaN has no meaning
  } else if (!draws_ &&
             (report.step == 1 || report.step % config_.log.every == 0 || report.step == config_.train.steps)) {
    const std::string rate = rate_text();
    line(fmt::format("step {}  loss {:.4f}  lr {:.3e}  grad norm {:.3f}{}{}", report.step, report.loss, report.lr,
                     report.grad_norm, rate.empty() ? "" : "  ", rate));
  }
  if (evaluation_follows(report.step)) busy_ = "evaluating";
  const bool due = std::chrono::duration<double>(Clock::now() - drawn_at_).count() >= redraw_interval_s;
  if (due || !busy_.empty()) draw();
}

void Progress::on_evaluating(Index done, Index total) {
  busy_ = fmt::format("evaluating {:.0f} %", 100.0 * static_cast<double>(done) / static_cast<double>(total));
  const bool due = std::chrono::duration<double>(Clock::now() - drawn_at_).count() >= redraw_interval_s;
  if (due) draw();
}

void Progress::on_evaluation(const EvaluationReport& report) {
  other_s_ += since_mark();
  busy_.clear();
  line(fmt::format("step {}  validation loss {:.4f}  {:.4f} bits per byte{}", report.step, report.validation.loss,
                   report.validation.bits_per_byte, report.is_best ? "  (best)" : ""));
}

void Progress::on_save(const SaveReport& report) {
  other_s_ += since_mark();
  StopRequest::note_saved(report.step);
  // A step that is saved before its evaluation is saved again afterwards; it is reported once.
  if (std::exchange(saved_step_, report.step) != report.step) line(fmt::format("saved step {}", report.step));
}

}  // namespace handgrad::cli
