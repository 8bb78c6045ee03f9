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

// A container is an HDF5 file with a trailer:
//
//   image      HDF5 that h5py and h5dump can read: groups, contiguous datasets, attributes of groups
//   index      every dataset (path, type, shape, offset, bytes, XXH3-64) and every attribute, so that a container is
//              read without libhdf5
//   seal       64 bytes: magic, format, lengths, XXH3-128 of all bytes before the hash
//
// The caller defines the meaning of the paths.

/// The type of a dataset's elements, with its number in the file format.
enum class ElementType : std::uint8_t { float32 = 1, float64 = 2, int64 = 3, uint32 = 4, uint8 = 5 };

namespace io {

/// The container format that is written, and the newest that is read. Format 2 added attributes of checkpoints: a
/// pending evaluation, and the numerics of the run.
inline constexpr std::uint32_t container_format = 2;

inline constexpr std::size_t largest_rank = 8;
inline constexpr std::size_t longest_path = 1024;
inline constexpr std::size_t longest_attribute = 4096;
inline constexpr std::size_t most_datasets = 100'000;
inline constexpr std::size_t most_attributes = 10'000;

/// Bytes of an element; 0 for an unknown type.
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

}  // namespace io

/// A dataset to be written. Non-owning.
struct DatasetSource {
  std::string path;  ///< "/model/blocks/0/attention/qkv/weight"
  ElementType type = ElementType::float32;
  std::vector<Index> shape;  ///< Empty: a scalar.
  const void* data = nullptr;
};

using AttributeValue = std::variant<std::int64_t, double, std::string>;

/// A named value of a group. A string has at most io::longest_attribute bytes, and no NUL.
struct Attribute {
  std::string group;  ///< "/" or "/optimizer"
  std::string name;
  AttributeValue value;
};

namespace io {

/// Throws ShapeError unless all extents are non-negative and their product is `count`.
void require_shape_of(const std::string& path, const std::vector<Index>& shape, std::size_t count);

}  // namespace io

/// The contents of a container to be written. Paths are names joined by slashes; no dataset is inside another.
struct ContainerContents {
  std::vector<DatasetSource> datasets;
  std::vector<Attribute> attributes;

  /// Throws ShapeError if the number of elements of the shape is not that of `values`.
  template <class T>
  void add(std::string path, std::span<const T> values, std::vector<Index> shape) {
    io::require_shape_of(path, shape, values.size());
    datasets.push_back({std::move(path), io::element_type<T>(), std::move(shape), values.data()});
  }
  /// Adds a text as a dataset of bytes.
  void add_text(std::string path, std::string_view text) {
    datasets.push_back({std::move(path), ElementType::uint8, {std::ssize(text)}, text.data()});
  }
};

/// A dataset in the index of a container.
struct DatasetEntry {
  std::string path;
  ElementType type = ElementType::float32;
  std::vector<Index> shape;
  std::uint64_t offset = 0;  ///< From the start of the file; a multiple of 8.
  std::uint64_t bytes = 0;
  std::uint64_t hash = 0;  ///< XXH3-64 of its bytes.
};

}  // namespace handgrad
