#pragma once

#include "handgrad/core/choices.h"
#include "handgrad/core/types.h"

namespace handgrad {

/// The learning rate as a function of the step, counted from 0.
///
/// While step < warmup the rate is peak (step + 1) / warmup: the first update has peak / warmup, or peak without
/// warmup. Then, with u = (step - warmup) / (total - warmup) in [0, 1]:
///   constant             peak
///   linear               peak + (floor - peak) u
///   cosine               floor + (peak - floor) (1 + cos(pi u)) / 2
///   warmup_stable_decay  peak, then linear to floor over the last `decay` steps
/// From step `total` on the rate is the floor (constant: the peak). A warmup of `total` steps or more is valid: the
/// rate then rises until the last step. Sources: Loshchilov and Hutter 2016, arXiv:1608.03983 (cosine); Hu et al. 2024,
/// arXiv:2404.06395 (warmup_stable_decay).
struct Schedule {
  ScheduleKind kind = ScheduleKind::cosine;
  double peak = 1e-3;
  double floor = 0.0;
  Index warmup = 0;
  Index total = 1;
  Index decay = 0;

  /// Throws RangeError for a step below 0.
  double at(Index step) const;
};

}  // namespace handgrad
