#pragma once

#include <limits>

#include "handgrad/core/types.h"

namespace handgrad {

/// The state of a training run besides weights and moments. Random numbers and the order of the data are functions of
/// the seed and these counters.
struct LoopState {
  Index step = 0;     ///< Updates attempted and logged: the number of the last completed step.
  Index updates = 0;  ///< Updates applied: t of the optimiser.
  Index tokens = 0;   ///< Targets trained on.
  double best_loss = std::numeric_limits<double>::infinity();  ///< Of validation, in nats per token.
  Index best_step = 0;
  Index evaluations_since_best = 0;
  /// True if the evaluation due at this step has not been made. A resumed run makes it first.
  bool evaluation_pending = false;
  Index skipped = 0;         ///< Updates not applied because the loss or the gradient was not finite.
  Index skipped_in_row = 0;  ///< Of these, the number since the last applied update.
};

/// Records a validation loss at the loop's step. Returns true if it is the best so far; a loss that is not finite never
/// is.
bool note_evaluation(LoopState& loop, double loss);

}  // namespace handgrad
