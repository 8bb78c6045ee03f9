#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace handgrad {

/// XXH3-64 of some bytes; `seed` chains several pieces.
std::uint64_t hash64(std::span<const std::byte> bytes, std::uint64_t seed = 0);

/// XXH3-128 of some bytes, in its canonical (big-endian) form.
std::array<std::byte, 16> hash128(std::span<const std::byte> bytes);

}  // namespace handgrad
