#include "handgrad/checkpoint/loop_state.h"

#include "core/math.h"

namespace handgrad {

bool note_evaluation(LoopState& loop, double loss) {
  if (!is_finite(loss) || loss >= loop.best_loss) {
    ++loop.evaluations_since_best;
    return false;
  }
  loop.best_loss = loss;
  loop.best_step = loop.step;
  loop.evaluations_since_best = 0;
  return true;
}

}  // namespace handgrad
