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

/// The reason why bytes are not a container. The caller adds the path.
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
  bool hash_holds = false;  ///< Do the file's bytes have the hash stored in the seal?
};

/// The size of the seal at the end of a file, the same in every format.
inline constexpr std::size_t seal_bytes = 64;

/// The size of an encoded index and the seal.
std::size_t trailer_bytes(const ContainerIndex& index);

/// Appends a sorted index and the seal to an image.
void append_trailer(std::vector<std::byte>& file, const ContainerIndex& index);

/// The seal at the end of a file; empty if the magic number is missing. Its lengths are not checked.
std::optional<Seal> find_seal(std::span<const std::byte> file);

/// Do the lengths in the seal match the size of the file?
bool lengths_hold(const Seal& seal, std::size_t file_bytes);

/// Decodes an index and checks all bounds, orders, overlaps and products. Throws MalformedContainer.
ContainerIndex decode_index(std::span<const std::byte> index, std::uint64_t image_bytes);

/// Throws MalformedContainer unless a path consists of plain names joined by slashes.
void check_path(std::string_view path);

/// The number of bytes of a shape. Throws MalformedContainer for negative extents, ranks above largest_rank,
/// and products beyond 63 bits.
std::uint64_t checked_bytes(ElementType type, const std::vector<Index>& shape);

/// Throws MalformedContainer if an attribute has an invalid path, a long text or a NUL.
void check_attribute(const Attribute& attribute);

/// Throws MalformedContainer unless paths are unique and sorted, and no dataset is inside another.
void check_paths(const std::vector<DatasetEntry>& datasets);

/// The end-of-file address in an HDF5 superblock; empty if the file is too short or has no superblock.
std::optional<std::uint64_t> hdf5_end(std::span<const std::byte> file);

/// Does the file begin with the HDF5 signature?
bool has_hdf5_signature(std::span<const std::byte> file);

}  // namespace handgrad
