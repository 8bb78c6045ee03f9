#pragma once

#include <algorithm>
#include <cmath>

#include "handgrad/ops/attention_options.h"
#include "ops/broadcast.h"

namespace handgrad {

/// The factor of the scores.
inline double attention_scale(const AttentionOptions& options, Index width) {
  return options.scale != 0.0 ? options.scale : 1.0 / std::sqrt(static_cast<double>(width));
}

/// One tile of scores: queries [q0, q0 + rows) against keys [k0, k0 + cols) of one head of one sequence.
struct ScoreTile {
  Index b, h, q0, rows, k0, cols;
};

/// The keys that each query sees, by the causal rule and the mask. The options are not owned.
class Visibility {
 public:
  Visibility(const AttentionOptions& options, const Shape& scores)
      : options_(options),
        mask_(options.mask ? broadcast_view(options.mask, scores) : MaskRef{}),
        lead_(scores[-1] - scores[-2]),
        hides_(options.mask || (options.causal && scores[-2] > 1)) {}

  /// True if a key may be hidden from a query.
  bool hides() const { return hides_; }
  bool sees(const ScoreTile& tile, Index r, Index c) const {
    return c < causal_count(tile, r) && (!masked() || mask_row(tile, r)[c * mask_step()]);
  }

  /// The number of keys of the tile, from its first, that the causal rule allows for row r of the tile.
  Index causal_count(const ScoreTile& tile, Index r) const {
    if (!options_.causal) return tile.cols;
    return std::clamp<Index>(tile.q0 + r + lead_ + 1 - tile.k0, 0, tile.cols);
  }
  /// The end of the keys that the queries below `q_end` may see.
  Index keys_end(Index q_end, Index keys) const { return options_.causal ? std::min(q_end + lead_, keys) : keys; }
  /// The first query that may see key k0.
  Index first_query(Index k0) const { return options_.causal ? std::max<Index>(0, k0 - lead_) : 0; }

  bool masked() const { return static_cast<bool>(mask_); }
  const std::uint8_t* mask_row(const ScoreTile& tile, Index r) const {
    return mask_.data + tile.b * mask_.strides[0] + tile.h * mask_.strides[1] + (tile.q0 + r) * mask_.strides[2] +
           tile.k0 * mask_.strides[3];
  }
  Index mask_step() const { return mask_.strides[3]; }

 private:
  const AttentionOptions& options_;
  MaskRef mask_;
  Index lead_;
  bool hides_;
};

}  // namespace handgrad
