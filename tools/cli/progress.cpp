#include "progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace handgrad::cli {
namespace {

using Clock = std::chrono::steady_clock;

double seconds(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

std::size_t terminal_width() {
  winsize size{};
  return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

}  // namespace

std::string clock_time(double seconds) {
  const auto s = static_cast<Index>(std::max(0.0, seconds) + 0.5);
  return s >= 3600 ? fmt::format("{}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60)
                   : fmt::format("{}:{:02}", s / 60, s % 60);
}

Progress::Progress(const Config& config, Index first_step, bool quiet)
    : config_(config),
      first_step_(first_step),
      quiet_(quiet),
      terminal_(isatty(STDOUT_FILENO) == 1),
      started_(Clock::now()) {}

Progress::~Progress() { clear_bar(); }

void Progress::clear_bar() {
  if (!drawn_) return;
  fmt::print("\r\033[K");
  std::fflush(stdout);
  drawn_ = false;
}

void Progress::line(const std::string& text) {
  if (quiet_) return;
  clear_bar();
  fmt::print("{}\n", text);
  std::fflush(stdout);
}

std::string Progress::bar(const StepReport& report) const {
  const auto now = Clock::now();
  const double rate =
      static_cast<double>(report.tokens - tokens_at_start_) / std::max(1e-9, seconds(rate_started_, now));
  const double per_step = seconds(started_, now) / static_cast<double>(report.step - first_step_);
  const double left = per_step * static_cast<double>(config_.train.steps - report.step);
  const std::string text = fmt::format(" {}/{}  loss {:.4f}  lr {:.2e}  {:.0f} tokens/s  {} left", report.step,
                                       config_.train.steps, smoothed_loss_, report.lr, rate, clock_time(left));
  const std::size_t room = terminal_width();
  if (room < text.size() + 12) return text.substr(1, room > 1 ? room - 1 : 0);
  const std::size_t width = std::min<std::size_t>(30, room - text.size() - 3);
  const double share = static_cast<double>(report.step) / static_cast<double>(config_.train.steps);
  const auto filled = static_cast<std::size_t>(share * static_cast<double>(width));
  return fmt::format("[{}{}]{}", std::string(filled, '='), std::string(width - filled, ' '), text);
}

void Progress::on_step(const StepReport& report) {
  const bool first = tokens_at_start_ < 0;
  if (first) {  // the first step also takes memory and warms up: rates are counted from its end
    tokens_at_start_ = report.tokens;
    rate_started_ = Clock::now();
  }
  if (report.skipped) {
    line(fmt::format("step {}  skipped: loss {:.4g}, gradient norm {:.4g}", report.step, std::abs(report.loss),
                     std::abs(report.grad_norm)));  // the sign of a NaN means nothing; neither is below 0
    return;
  }
  smoothed_loss_ = first ? report.loss : 0.9 * smoothed_loss_ + 0.1 * report.loss;
  if (quiet_) return;
  if (terminal_) {
    if (seconds(drawn_at_, Clock::now()) < 0.1 && report.step < config_.train.steps) return;
    drawn_at_ = Clock::now();
    fmt::print("\r{}\033[K", bar(report));
    std::fflush(stdout);
    drawn_ = true;
  } else if (report.step == 1 || report.step % config_.log.every == 0 || report.step == config_.train.steps) {
    const double spent = seconds(rate_started_, Clock::now());
    const double rate = spent > 0 && !first ? static_cast<double>(report.tokens - tokens_at_start_) / spent : 0.0;
    line(fmt::format("step {}  loss {:.4f}  lr {:.3e}  grad norm {:.3f}{}", report.step, report.loss, report.lr,
                     report.grad_norm, rate > 0 ? fmt::format("  {:.0f} tokens/s", rate) : ""));
  }
}

void Progress::on_evaluation(const EvaluationReport& report) {
  line(fmt::format("step {}  validation loss {:.4f}  {:.4f} bits per byte{}", report.step, report.validation.loss,
                   report.validation.bits_per_byte, report.is_best ? "  (best)" : ""));
}

void Progress::on_save(const SaveReport& report) { line(fmt::format("saved step {}", report.step)); }

}  // namespace handgrad::cli
