#pragma once

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <cstring>
#include <span>
#include <string>
#include <vector>

namespace handgrad::test {

using Bytes = std::vector<std::byte>;

template <class T>
T number_at(const Bytes& file, std::size_t at) {
  T value;
  std::memcpy(&value, file.data() + at, sizeof value);
  return value;
}

template <class T>
void put_at(Bytes& file, std::size_t at, T value) {
  std::memcpy(file.data() + at, &value, sizeof value);
}

/// Gives a changed container a valid seal. Written independently of the library's code.
inline void seal_again(Bytes& file) {
  XXH128_canonical_t hash;
  XXH128_canonicalFromHash(&hash, XXH3_128bits(file.data(), file.size() - 16));
  std::memcpy(file.data() + file.size() - 16, &hash, 16);
}

inline std::size_t image_bytes(const Bytes& file) { return number_at<std::uint64_t>(file, file.size() - 48); }

/// A container with another index and a seal that is valid for it.
inline Bytes with_index(const Bytes& file, const std::string& index) {
  Bytes forged(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(image_bytes(file)));
  const auto raw = std::as_bytes(std::span(index));
  forged.insert(forged.end(), raw.begin(), raw.end());
  forged.insert(forged.end(), file.end() - 64, file.end());
  put_at<std::uint64_t>(forged, forged.size() - 40, index.size());
  seal_again(forged);
  return forged;
}

/// Builds the bytes of an index, well-formed or malformed.
class IndexForger {
 public:
  template <class T>
  IndexForger& number(T value) {
    text_.append(reinterpret_cast<const char*>(&value), sizeof value);
    return *this;
  }
  IndexForger& text(const std::string& value) {
    number(static_cast<std::uint16_t>(value.size()));
    text_ += value;
    return *this;
  }
  IndexForger& counts(std::uint32_t datasets, std::uint32_t attributes) { return number(datasets).number(attributes); }
  /// A float32 dataset with one axis. Its hash is stored as 0.
  IndexForger& dataset(const std::string& path, std::int64_t extent, std::uint64_t offset, std::uint64_t bytes,
                       std::uint8_t type = 1) {
    return text(path)
        .number(type)
        .number(std::uint8_t{1})
        .number(extent)
        .number(offset)
        .number(bytes)
        .number(std::uint64_t{0});
  }
  operator const std::string&() const { return text_; }

 private:
  std::string text_;
};

}  // namespace handgrad::test
