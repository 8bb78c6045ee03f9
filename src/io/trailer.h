#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "handgrad/files/hash.h"
#include "handgrad/io/container.h"

namespace handgrad {

/// Why bytes are no container; the caller adds where they come from.
class MalformedContainer : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct ContainerIndex {
  std::vector<DatasetEntry> datasets;
  std::vector<Attribute> attributes;
};

struct Seal {
  std::uint32_t format = 0;
  std::uint64_t image_bytes = 0;
  std::uint64_t index_bytes = 0;
  bool hash_holds = false;  ///< Do the file's bytes have the hash that the seal tells?
};

/// Last 64 bytes of a file in every format, present and future.
inline constexpr std::size_t seal_bytes = 64;

/// The bytes that an index and the seal will take.
std::size_t trailer_bytes(const ContainerIndex& index);

/// Appends an index, sorted already, and the seal to an image.
void append_trailer(std::vector<std::byte>& file, const ContainerIndex& index);

/// The seal at the end of a file; nothing if its magic is not there. Lengths are not yet checked.
std::optional<Seal> find_seal(std::span<const std::byte> file);

/// Is the seal's account of its lengths that of the file?
bool lengths_hold(const Seal& seal, std::size_t file_bytes);

/// Reads an index with every bound, order, overlap and product checked. Throws MalformedContainer.
ContainerIndex decode_index(std::span<const std::byte> index, std::uint64_t image_bytes);

/// Throws MalformedContainer if a path is not made of plain names joined by slashes.
void check_path(std::string_view path);

/// Bytes of elements of a type in a shape. Throws MalformedContainer for negative extents, ranks above largest_rank,
/// and products beyond 63 bits.
std::uint64_t checked_bytes(ElementType type, const std::vector<Index>& shape);

/// Throws MalformedContainer if an attribute is not one that a container holds.
void check_attribute(const Attribute& attribute);

/// Throws MalformedContainer if paths are not unique and sorted, or one leads through a dataset.
void check_paths(const std::vector<DatasetEntry>& datasets);

/// The address of the end that an HDF5 superblock tells; nothing if the file is too short to tell, or has none.
std::optional<std::uint64_t> hdf5_end(std::span<const std::byte> file);

/// Does the file start as HDF5 files do?
bool has_hdf5_signature(std::span<const std::byte> file);

}  // namespace handgrad
