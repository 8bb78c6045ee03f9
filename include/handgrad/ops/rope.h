#pragma once

#include <span>

#include "handgrad/autograd/var.h"
#include "handgrad/core/buffer.h"
#include "handgrad/core/choices.h"
#include "handgrad/ops/positions.h"

namespace handgrad {

namespace detail {
[[noreturn]] void refuse_rope_position(Index position, Index positions);
}

/// Cosines and sines of position * theta^(-2i/D) for every position and pair, computed in double.
template <class S>
class RopeTable {
 public:
  /// Throws ShapeError if `width` (D) is odd, RangeError unless theta > 0.
  RopeTable(Index width, double theta, RopePairing pairing);

  /// Extends the table to positions [0, positions). Do not call it during a forward pass.
  void extend(Index positions);

  Index width() const { return width_; }
  Index positions() const { return cosines_.size() / (width_ / 2); }
  RopePairing pairing() const { return pairing_; }
  /// The D/2 values of one position. Throw RangeError for a position outside [0, positions()).
  std::span<const S> cosines(Index position) const { return pairs(cosines_, position); }
  std::span<const S> sines(Index position) const { return pairs(sines_, position); }

 private:
  std::span<const S> pairs(const Buffer<S>& values, Index position) const {
    const Index count = width_ / 2, size = values.size();
    if (position < 0 || position >= size || position * count >= size) {
      detail::refuse_rope_position(position, positions());
    }
    return {values.data() + position * count, static_cast<std::size_t>(count)};
  }

  Index width_;
  double theta_;
  RopePairing pairing_;
  Buffer<S> cosines_, sines_;
};

/// Rotary position embedding: rotates each pair of features by an angle proportional to the position.
///
///   forward    (a, b) = (x[.., 2i], x[.., 2i+1]) or (x[.., i], x[.., i + D/2]),  phi = position * theta^(-2i/D)
///              a' = a cos(phi) - b sin(phi),  b' = a sin(phi) + b cos(phi)
///   backward   y = R x with R orthogonal, so dx += R^T dy: the rotation by -phi
///
/// Shapes   x, y: (B, T, H, D), of any strides but the last; positions: (T) or (B, T), counted from 0.
/// Saves    positions only; R depends on nothing else. The table must not be destroyed before the backward pass.
/// Throws   ShapeError if positions or table do not match x; RangeError for a position outside the table.
/// Source   Su et al. 2021, RoFormer, arXiv:2104.09864, section 3.4.2; pairs (i, i + D/2) as in GPT-NeoX.
template <class S>
Var<S> rope(Var<S> x, PositionsRef positions, const RopeTable<S>& table);

template <class S>
void rope_forward(Heads<const S> x, PositionsRef positions, const RopeTable<S>& table, Heads<S> y);
template <class S>
void rope_backward(Heads<const S> dy, PositionsRef positions, const RopeTable<S>& table, Heads<S> dx);

}  // namespace handgrad
