#pragma once

#include <limits>

#include "handgrad/core/types.h"

namespace handgrad {

/// Where a training run stands, beside its weights and moments. Random numbers and the order of data have no state:
/// they are functions of the seed and of these counters.
struct LoopState {
  Index step = 0;     ///< Updates attempted and logged: the number of the last completed step.
  Index updates = 0;  ///< Updates applied: t of the optimiser.
  Index tokens = 0;   ///< Targets trained on.
  double best_loss = std::numeric_limits<double>::infinity();  ///< Of validation, in nats a token.
  Index best_step = 0;
  Index evaluations_since_best = 0;
  /// True if the evaluation that is due at this step has not been done. A resumed run does it first.
  bool evaluation_pending = false;
  Index skipped = 0;         ///< Updates that were not applied, their loss or gradient not being finite.
  Index skipped_in_row = 0;  ///< Of the last steps, without one applied between them.
};

/// Takes note of a loss on validation at the loop's step: whether it is the best so far. One that is not finite is
/// none.
bool note_evaluation(LoopState& loop, double loss);

}  // namespace handgrad
