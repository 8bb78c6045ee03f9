#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace handgrad::files {

/// XXH3-64. To hash several pieces, pass the hash of one as the seed of the next.
std::uint64_t hash64(std::span<const std::byte> bytes, std::uint64_t seed = 0);

/// XXH3-128 in its canonical (big-endian) form.
std::array<std::byte, 16> hash128(std::span<const std::byte> bytes);

}  // namespace handgrad::files
