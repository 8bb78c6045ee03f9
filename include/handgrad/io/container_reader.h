#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "handgrad/io/container.h"

namespace handgrad {

/// A sealed container in memory. It is verified completely when it is loaded, without libhdf5.
class Container {
 public:
  /// Throws CheckpointError, one line with path and reason: missing, not HDF5, truncated, damaged (and in which
  /// dataset), without a seal, of a newer format, malformed. Throws ResourceError if it does not fit in memory.
  static Container load(const std::string& path);
  /// The same from memory; messages contain `name` instead of a path.
  static Container from_bytes(std::vector<std::byte> bytes, std::string name);

  const std::string& name() const { return name_; }
  /// The whole file.
  std::span<const std::byte> bytes() const { return bytes_; }
  /// Every dataset, sorted by path.
  const std::vector<DatasetEntry>& datasets() const { return datasets_; }
  /// Every attribute, sorted by group and name.
  const std::vector<Attribute>& attributes() const { return attributes_; }

  /// Null for an unknown path.
  const DatasetEntry* find(std::string_view path) const;
  /// Null for an unknown attribute.
  const AttributeValue* find_attribute(std::string_view group, std::string_view name) const;

  /// Throws CheckpointError for an entry (of another container) that is not inside this one.
  std::span<const std::byte> bytes_of(const DatasetEntry& entry) const {
    if (entry.offset > bytes_.size() || entry.bytes > bytes_.size() - entry.offset) refuse_entry(entry);
    return bytes().subspan(entry.offset, entry.bytes);
  }
  /// The elements of a dataset, in place. Throws CheckpointError if it is missing or of another type.
  template <class T>
  std::span<const T> values(std::string_view path) const {
    const std::span<const std::byte> raw = bytes_of(required(path, io::element_type<T>()));
    return {reinterpret_cast<const T*>(raw.data()), raw.size() / sizeof(T)};
  }
  /// Size of the whole file.
  Index size_bytes() const { return std::ssize(bytes_); }
  std::string_view text(std::string_view path) const {
    const std::span<const char> characters = values<char>(path);
    return {characters.data(), characters.size()};
  }
  /// An attribute's value: std::int64_t, double or std::string. Throws CheckpointError if it is missing or of another
  /// type.
  template <class T>
  const T& attribute(std::string_view group, std::string_view attribute_name) const {
    const AttributeValue* value = find_attribute(group, attribute_name);
    if (value == nullptr || !std::holds_alternative<T>(*value)) refuse_attribute(group, attribute_name, value);
    return std::get<T>(*value);
  }

  /// The same, or `absent` for a missing attribute; files of older formats lack some.
  template <class T>
  T attribute_or(std::string_view group, std::string_view attribute_name, T absent) const {
    return find_attribute(group, attribute_name) == nullptr ? absent : attribute<T>(group, attribute_name);
  }

 private:
  Container() = default;
  [[noreturn]] void refuse_entry(const DatasetEntry& entry) const;
  const DatasetEntry& required(std::string_view path, ElementType type) const;
  [[noreturn]] void refuse_attribute(std::string_view group, std::string_view attribute_name,
                                     const AttributeValue* value) const;

  std::string name_;
  std::vector<std::byte> bytes_;
  std::vector<DatasetEntry> datasets_;
  std::vector<Attribute> attributes_;
};

}  // namespace handgrad
