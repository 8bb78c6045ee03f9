#include "handgrad/files/hash.h"

#include <cstring>

// AVX2 instead of AVX-512, since GCC 12 warns about its own AVX-512 intrinsics. The hashes are the same.
#define XXH_INLINE_ALL
#if defined(__AVX512F__)
#define XXH_VECTOR XXH_AVX2
#endif
#include <xxhash.h>

namespace handgrad::files {

std::uint64_t hash64(std::span<const std::byte> bytes, std::uint64_t seed) {
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed);
}

std::array<std::byte, 16> hash128(std::span<const std::byte> bytes) {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, XXH3_128bits(bytes.data(), bytes.size()));
  std::array<std::byte, 16> digest;
  static_assert(sizeof(canonical) == sizeof(digest));
  std::memcpy(digest.data(), &canonical, sizeof(digest));
  return digest;
}

}  // namespace handgrad::files
