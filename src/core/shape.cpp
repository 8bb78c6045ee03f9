#include "handgrad/core/shape.h"

#include <fmt/format.h>

#include "handgrad/core/errors.h"

namespace handgrad {

Index checked_product(Index a, Index b, const char* what) {
  Index product = 0;
  if (__builtin_mul_overflow(a, b, &product)) {
    throw RangeError(fmt::format("{}: {} x {} does not fit in 63 bits", what, a, b));
  }
  return product;
}

Shape::Shape(std::span<const Index> extents) {
  if (extents.size() > max_rank) {
    throw ShapeError(fmt::format("shape: at most {} axes, got {}", max_rank, extents.size()));
  }
  for (const Index extent : extents) {
    if (extent < 1) throw ShapeError(fmt::format("shape: every extent must be at least 1, got {}", extent));
    size_ = checked_product(size_, extent, "shape: number of elements");
    extents_[rank_++] = extent;
  }
}

int Shape::axis_index(int axis) const {
  const int counted = axis < 0 ? axis + rank_ : axis;
  if (counted < 0 || counted >= rank_) {
    throw ShapeError(fmt::format("shape {}: there is no axis {}", to_string(), axis));
  }
  return counted;
}

Shape Shape::with(int axis, Index extent) const {
  std::array<Index, max_rank> extents = extents_;
  extents[axis_index(axis)] = extent;
  return Shape(std::span<const Index>(extents.data(), rank_));
}

std::string Shape::to_string() const { return fmt::format("({})", fmt::join(extents(), ", ")); }

Shape broadcast_shape(const Shape& a, const Shape& b, const char* operation) {
  const int rank = std::max(a.rank(), b.rank());
  std::array<Index, Shape::max_rank> extents{};
  for (int i = 1; i <= rank; ++i) {
    const Index from_a = i <= a.rank() ? a[-i] : 1;
    const Index from_b = i <= b.rank() ? b[-i] : 1;
    if (from_a != from_b && from_a != 1 && from_b != 1) {
      throw ShapeError(
          fmt::format("{}: extents must be equal or 1, got {} and {}", operation, a.to_string(), b.to_string()));
    }
    extents[rank - i] = std::max(from_a, from_b);
  }
  return Shape(std::span<const Index>(extents.data(), rank));
}

}  // namespace handgrad
