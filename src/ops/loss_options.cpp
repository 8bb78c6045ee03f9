#include "handgrad/ops/loss_options.h"

#include <algorithm>

namespace handgrad {

Index count_targets(std::span<const TokenId> targets, TokenId ignore) {
  return std::ssize(targets) - std::count(targets.begin(), targets.end(), ignore);
}

}  // namespace handgrad
