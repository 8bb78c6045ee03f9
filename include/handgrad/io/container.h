#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include "handgrad/core/types.h"

namespace handgrad {

// A container is an HDF5 file with a trailer of ours:
//
//   image      HDF5, as h5py and h5dump read it: groups, contiguous datasets, attributes of groups
//   index      every dataset (path, type, shape, offset, bytes, XXH3-64) and every attribute, so that reading needs
//              no libhdf5
//   seal       64 bytes: magic, format, lengths, XXH3-128 of all bytes before the hash
//
// It knows nothing of models: what the paths mean is the caller's business.

/// What a dataset's elements are. The numbers are those of the file format.
enum class ElementType : std::uint8_t { float32 = 1, float64 = 2, int64 = 3, uint32 = 4, uint8 = 5 };

/// The newest container format that this program reads, and the one that it writes.
/// Format 2 added what a checkpoint says of an evaluation still to come and of the numbers' origin.
inline constexpr std::uint32_t container_format = 2;

inline constexpr std::size_t largest_rank = 8;
inline constexpr std::size_t longest_path = 1024;
inline constexpr std::size_t longest_attribute = 4096;
inline constexpr std::size_t most_datasets = 100'000;
inline constexpr std::size_t most_attributes = 10'000;

/// Bytes of an element; 0 if there is no such type.
std::size_t element_bytes(ElementType type);

/// "float32"
std::string_view element_name(ElementType type);

/// The ElementType of a C++ type; text (char) is stored as uint8.
template <class T>
constexpr ElementType element_type() {
  if constexpr (std::is_same_v<T, float>) return ElementType::float32;
  if constexpr (std::is_same_v<T, double>) return ElementType::float64;
  if constexpr (std::is_same_v<T, std::int64_t>) return ElementType::int64;
  if constexpr (std::is_same_v<T, std::uint32_t>) return ElementType::uint32;
  if constexpr (std::is_same_v<T, std::uint8_t> || std::is_same_v<T, char>) return ElementType::uint8;
}

/// A dataset to be written. Borrows its elements.
struct DatasetSource {
  std::string path;  ///< "/model/blocks/0/attention/qkv/weight"
  ElementType type = ElementType::float32;
  std::vector<Index> shape;  ///< Empty: a scalar.
  const void* data = nullptr;
};

using AttributeValue = std::variant<std::int64_t, double, std::string>;

/// A small value that belongs to a group; strings of at most longest_attribute bytes, without NUL.
struct Attribute {
  std::string group;  ///< "/" or "/optimizer"
  std::string name;
  AttributeValue value;
};

namespace detail {
/// Throws ShapeError unless the product of the extents, none of them negative, is `count`.
void require_shape_of(const std::string& path, const std::vector<Index>& shape, std::size_t count);
}  // namespace detail

/// What goes into a container. Paths are made of names joined by slashes; no dataset's path leads through another's.
struct ContainerContents {
  std::vector<DatasetSource> datasets;
  std::vector<Attribute> attributes;

  /// Throws ShapeError if the shape has another number of elements than `values`.
  template <class T>
  void add(std::string path, std::span<const T> values, std::vector<Index> shape) {
    detail::require_shape_of(path, shape, values.size());
    datasets.push_back({std::move(path), element_type<T>(), std::move(shape), values.data()});
  }
  /// Text becomes a dataset of bytes.
  void add_text(std::string path, std::string_view text) {
    datasets.push_back({std::move(path), ElementType::uint8, {static_cast<Index>(text.size())}, text.data()});
  }
};

/// A dataset as the index of a container has it.
struct DatasetEntry {
  std::string path;
  ElementType type = ElementType::float32;
  std::vector<Index> shape;
  std::uint64_t offset = 0;  ///< From the start of the file, a multiple of 8.
  std::uint64_t bytes = 0;
  std::uint64_t hash = 0;  ///< XXH3-64 of its bytes.
};

}  // namespace handgrad
