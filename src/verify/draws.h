#pragma once

#include <cstdint>

namespace handgrad::verify {

/// The kinds of random draws in proofs. Each has its own substreams of Stream::audit.
enum class Draw : std::uint32_t { direction = 0x10000, tensor_direction = 0x20000, added_gradient = 0x40000 };

/// The substream of draw number n of a kind.
inline std::uint32_t draw_number(Draw kind, std::uint64_t n) {
  return static_cast<std::uint32_t>(kind) + static_cast<std::uint32_t>(n);
}

}  // namespace handgrad::verify
