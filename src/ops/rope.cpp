#include "handgrad/ops/rope.h"

#include <fmt/format.h>

#include <cmath>

#include "core/float_environment.h"
#include "core/instantiate.h"
#include "core/math.h"
#include "handgrad/autograd/output.h"
#include "handgrad/core/errors.h"
#include "ops/check.h"
#include "ops/elementwise.h"

namespace handgrad {

void detail::refuse_rope_position(Index position, Index positions) {
  throw RangeError(fmt::format("rope: position {} is outside the table's [0, {})", position, positions));
}

template <class S>
RopeTable<S>::RopeTable(Index width, double theta, RopePairing pairing)
    : width_(width), theta_(theta), pairing_(pairing) {
  if (width < 2 || width % 2 != 0) {
    throw ShapeError(fmt::format("rope: the head width must be even and above 0, got {}", width));
  }
  if (!(theta > 0.0)) throw RangeError(fmt::format("rope: theta must be above 0, got {}", theta));
}

template <class S>
void RopeTable<S>::extend(Index positions) {
  if (positions < 0)
    throw RangeError(fmt::format("rope: the number of positions must be 0 or more, got {}", positions));
  if (positions <= this->positions()) return;
  const FloatEnvironment environment;
  const Index pairs = width_ / 2;
  Buffer<S> cosines(checked_product(positions, pairs, "rope table")), sines(positions * pairs);
  for (Index p = 0; p < positions; ++p) {
    for (Index i = 0; i < pairs; ++i) {
      const double phi =
          static_cast<double>(p) * std::pow(theta_, -2.0 * static_cast<double>(i) / static_cast<double>(width_));
      cosines[p * pairs + i] = constant<S>(std::cos(phi));
      sines[p * pairs + i] = constant<S>(std::sin(phi));
    }
  }
  cosines_ = std::move(cosines);
  sines_ = std::move(sines);
}

namespace {

template <class S>
void check_arguments(const Shape& x, PositionsRef positions, const RopeTable<S>& table) {
  if (!positions) throw ShapeError("rope: positions are needed, got none");
  if (x.rank() != 4 || x[3] != table.width() || positions.time != x[1] ||
      (positions.batch != 1 && positions.batch != x[0])) {
    throw ShapeError(fmt::format("rope: x (B, T, H, {}) with positions (T) or (B, T) is needed, got {} and ({}, {})",
                                 table.width(), x.to_string(), positions.batch, positions.time));
  }
  for (Index i = 0; i < positions.batch * positions.time; ++i) {
    if (positions.data[i] < 0 || positions.data[i] >= table.positions()) {
      throw RangeError(
          fmt::format("rope: position {} is outside the table's [0, {})", positions.data[i], table.positions()));
    }
  }
}

// Forward and backward are the same rotation, by +phi or -phi: `sense` is +1 or -1.
template <class S, class Put>
void rotate(Heads<const S> x, PositionsRef positions, const RopeTable<S>& table, int sense, const Heads<S>& y,
            Put put) {
  const Index pairs = x.width / 2;
  const bool adjacent = table.pairing() == RopePairing::adjacent;
  const S sign(static_cast<float>(sense));
  for_each_row(x.batch * x.time, x.heads * x.width, [&](Index row) {
    const Index b = row / x.time, t = row % x.time;
    const std::span<const S> cosine = table.cosines(positions.at(b, t));
    const std::span<const S> sine = table.sines(positions.at(b, t));
    for (Index h = 0; h < x.heads; ++h) {
      const S* in = x.at(b, t, h);
      S* out = y.at(b, t, h);
      const auto rotate_pair = [&](Index i, Index first, Index second) {
        const S p = in[first], q = in[second], s = sign * sine[i];
        put(out[first], p * cosine[i] - q * s);
        put(out[second], p * s + q * cosine[i]);
      };
      if (adjacent) {
        for (Index i = 0; i < pairs; ++i) rotate_pair(i, 2 * i, 2 * i + 1);
      } else {
        for (Index i = 0; i < pairs; ++i) rotate_pair(i, i, i + pairs);
      }
    }
  });
}

template <class S>
void check_heads(const char* kernel, const Heads<const S>& x, PositionsRef positions, const RopeTable<S>& table,
                 const Heads<S>& y) {
  if (!x || !y || x.batch != y.batch || x.time != y.time || x.heads != y.heads || x.width != y.width) {
    throw ShapeError(fmt::format("{}: heads of one shape are needed, got ({}, {}, {}, {}) and ({}, {}, {}, {})", kernel,
                                 x.batch, x.time, x.heads, x.width, y.batch, y.time, y.heads, y.width));
  }
  check_arguments({x.batch, x.time, x.heads, x.width}, positions, table);
}

}  // namespace

template <class S>
void rope_forward(Heads<const S> x, PositionsRef positions, const RopeTable<S>& table, Heads<S> y) {
  check_heads("rope_forward", x, positions, table, y);
  rotate<S>(x, positions, table, +1, y, [](S& to, S value) { to = value; });
}

// dx += R^T dy; R^T is the rotation by -phi
template <class S>
void rope_backward(Heads<const S> dy, PositionsRef positions, const RopeTable<S>& table, Heads<S> dx) {
  check_heads("rope_backward", dy, positions, table, dx);
  rotate<S>(dy, positions, table, -1, dx, [](S& to, S value) { to += value; });
}

template <class S>
Var<S> rope(Var<S> x, PositionsRef positions, const RopeTable<S>& table) {
  require_operands("rope", x);
  check_arguments(x.shape(), positions, table);  // before a node is made
  auto y = output("rope", x.shape(), x);
  rope_forward<S>(x.heads("rope"), positions, table, y.heads());
  const auto count = (positions.batch * positions.time);
  positions.data = y.copy(std::span(positions.data, count)).data();
  return y.saves(positions).on_backward([&table](const auto& saved, auto dy, auto dx) {
    const auto& [positions_saved] = saved;
    rope_backward<S>(dy.heads(), positions_saved, table, dx.heads());
  });
}

#define HANDGRAD_INSTANTIATE(S)                                                               \
  template class RopeTable<S>;                                                                \
  template void rope_forward<S>(Heads<const S>, PositionsRef, const RopeTable<S>&, Heads<S>); \
  template Var<S> rope<S>(Var<S>, PositionsRef, const RopeTable<S>&);
HANDGRAD_FOR_ALL_SCALARS(HANDGRAD_INSTANTIATE)
#undef HANDGRAD_INSTANTIATE
#define HANDGRAD_INSTANTIATE(S) \
  template void rope_backward<S>(Heads<const S>, PositionsRef, const RopeTable<S>&, Heads<S>);
HANDGRAD_FOR_REAL_SCALARS(HANDGRAD_INSTANTIATE)
#undef HANDGRAD_INSTANTIATE

}  // namespace handgrad
