#include "handgrad/io/container_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "handgrad/core/errors.h"
#include "handgrad/files/hash.h"
#include "handgrad/files/read_file.h"
#include "io/trailer.h"

namespace handgrad {
namespace {

std::string why_no_seal(std::span<const std::byte> file) {
  if (file.empty()) return "it is empty";
  if (!has_hdf5_signature(file)) return "it is not an HDF5 file";
  const auto end = hdf5_end(file);
  if (!end || file.size() < *end) return fmt::format("it is truncated to {} bytes", file.size());
  if (file.size() > *end) return "it is truncated or damaged: its seal is missing";
  return "it has no seal: another program wrote it, or it was cut; `handgrad inspect --reseal` seals it if it is sound";
}

// The part that is damaged, after the hash of the whole file has failed.
std::string where_damaged(std::span<const std::byte> file, const Seal& seal) {
  if (!lengths_hold(seal, file.size())) return "in its seal";
  ContainerIndex index;
  try {
    index = decode_index(file.subspan(seal.image_bytes, seal.index_bytes), seal.image_bytes);
  } catch (const MalformedContainer&) {
    return "in its index";
  }
  for (const DatasetEntry& d : index.datasets) {
    if (files::hash64(file.subspan(d.offset, d.bytes)) != d.hash) return "in " + d.path;
  }
  return "outside its datasets";
}

ContainerIndex checked_index(std::span<const std::byte> file) {
  const auto seal = find_seal(file);
  if (!seal) throw MalformedContainer(why_no_seal(file));
  if (!seal->hash_holds) throw MalformedContainer("it is damaged " + where_damaged(file, *seal));
  if (seal->format > io::container_format) {
    throw MalformedContainer(fmt::format("it was written by a newer handgrad: format {}, this one reads up to {}",
                                         seal->format, io::container_format));
  }
  if (seal->format == 0 || !lengths_hold(*seal, file.size())) throw MalformedContainer("its seal is malformed");
  ContainerIndex index = decode_index(file.subspan(seal->image_bytes, seal->index_bytes), seal->image_bytes);
  for (const DatasetEntry& d : index.datasets) {
    if (files::hash64(file.subspan(d.offset, d.bytes)) != d.hash) {
      throw MalformedContainer(fmt::format("{} does not have the hash in the index", d.path));
    }
  }
  return index;
}

}  // namespace

Container Container::load(const std::string& path) {
  std::vector<std::byte> bytes;
  try {
    bytes = files::read_bytes(path);
  } catch (const DataError& error) {
    throw CheckpointError(error.what());
  }
  return from_bytes(std::move(bytes), path);
}

Container Container::from_bytes(std::vector<std::byte> bytes, std::string name) {
  Container container;
  try {
    ContainerIndex index = checked_index(bytes);
    container.datasets_ = std::move(index.datasets);
    container.attributes_ = std::move(index.attributes);
  } catch (const MalformedContainer& reason) {
    throw CheckpointError(fmt::format("cannot load {}: {}", name, reason.what()));
  }
  container.bytes_ = std::move(bytes);
  container.name_ = std::move(name);
  return container;
}

const DatasetEntry* Container::find(std::string_view path) const {
  const auto order = [](const DatasetEntry& d, std::string_view wanted) { return d.path < wanted; };
  const auto found = std::lower_bound(datasets_.begin(), datasets_.end(), path, order);
  return found != datasets_.end() && found->path == path ? &*found : nullptr;
}

const AttributeValue* Container::find_attribute(std::string_view group, std::string_view name) const {
  for (const Attribute& a : attributes_) {
    if (a.group == group && a.name == name) return &a.value;
  }
  return nullptr;
}

const DatasetEntry& Container::required(std::string_view path, ElementType type) const {
  const DatasetEntry* entry = find(path);
  if (entry == nullptr) throw CheckpointError(fmt::format("cannot load {}: it has no {}", name_, path));
  if (entry->type != type) {
    throw CheckpointError(fmt::format("cannot load {}: {} is {}, expected {}", name_, path,
                                      io::element_name(entry->type), io::element_name(type)));
  }
  return *entry;
}

void Container::refuse_attribute(std::string_view group, std::string_view attribute_name,
                                 const AttributeValue* value) const {
  throw CheckpointError(
      value == nullptr
          ? fmt::format("cannot load {}: {} has no attribute {}", name_, group, attribute_name)
          : fmt::format("cannot load {}: attribute {} of {} has another type", name_, attribute_name, group));
}

void Container::refuse_entry(const DatasetEntry& entry) const {
  throw CheckpointError(fmt::format("{}: {}: bytes {} to {} are not inside its {} bytes", name_, entry.path,
                                    entry.offset, entry.offset + entry.bytes, bytes_.size()));
}

}  // namespace handgrad
