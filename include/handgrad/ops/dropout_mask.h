#pragma once

#include "handgrad/core/random.h"

namespace handgrad {

/// The elements that dropout keeps, as a function of (seed, site, row, column). The backward pass recomputes them. Rows
/// are counted over the whole training, so that the split of a batch changes nothing.
struct DropoutMask {
  double probability = 0.0;  ///< Probability of dropping an element, in [0, 1).
  std::uint64_t seed = 0;
  std::uint32_t site = 0;       ///< Number of the dropout in its model.
  std::uint64_t first_row = 0;  ///< Number of the first row of the array.

  bool active() const { return probability > 0.0; }
  /// The factor of kept elements, which preserves the mean.
  double keep_scale() const { return 1.0 / (1.0 - probability); }

  /// Calls keep(c, kept) for c in [begin, end) of a row of `cols` columns.
  template <class F>
  void row(std::uint64_t r, Index cols, Index begin, Index end, F&& keep) const {
    const Random random(seed, Stream::dropout, site);
    const auto threshold = static_cast<std::uint64_t>(probability * 4294967296.0);
    const std::uint64_t groups = (static_cast<std::uint64_t>(cols) + 3) / 4;  // four columns share one call of Philox
    Index c = begin;
    while (c < end) {
      const auto words = random.words((first_row + r) * groups + static_cast<std::uint64_t>(c / 4));
      const Index group_end = c / 4 * 4 + 4 < end ? c / 4 * 4 + 4 : end;
      for (; c < group_end; ++c) keep(c, words[c % 4] >= threshold);
    }
  }
};

}  // namespace handgrad
