#pragma once

#include "handgrad/core/choices.h"
#include "handgrad/core/types.h"

namespace handgrad {

/// A learning rate for every step from 0 on.
///
/// While step < warmup the rate is peak (step + 1) / warmup: the first update has peak / warmup, or peak without
/// warmup. Then, with u = (step - warmup) / (total - warmup) in [0, 1]:
///   constant             peak
///   linear               peak + (floor - peak) u
///   cosine               floor + (peak - floor) (1 + cos(pi u)) / 2
///   warmup_stable_decay  peak, then linear to floor over the last `decay` steps
/// From step total on the rate stays at the floor (constant: at the peak). A warmup of total steps and more is legal:
/// the rate rises as long as there are steps.
/// Sources: Loshchilov and Hutter 2016, arXiv:1608.03983 (cosine); Hu et al. 2024, arXiv:2404.06395 (the last one).
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
