#include "handgrad/optim/schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "handgrad/core/errors.h"

namespace handgrad {

double Schedule::at(Index step) const {
  if (step < 0) throw RangeError(fmt::format("schedule: the step must be 0 or more, got {}", step));
  if (step < warmup) return peak * static_cast<double>(step + 1) / static_cast<double>(warmup);
  if (kind == ScheduleKind::constant) return peak;
  const Index begin = kind == ScheduleKind::warmup_stable_decay ? std::max(warmup, total - decay) : warmup;
  if (step >= total) return floor;
  if (step < begin) return peak;
  const double u = static_cast<double>(step - begin) / static_cast<double>(total - begin);
  if (kind == ScheduleKind::cosine) return floor + (peak - floor) * 0.5 * (1.0 + std::cos(std::numbers::pi * u));
  return peak + (floor - peak) * u;
}

}  // namespace handgrad
