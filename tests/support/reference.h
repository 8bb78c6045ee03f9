#pragma once

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <variant>
#include <vector>

#include "handgrad/io/reseal.h"
#include "handgrad/ops/mask.h"

namespace handgrad::test {

/// Values of another program (tools/reference), from a file of tests/data.
class Reference {
 public:
  explicit Reference(const std::string& name)
      : file_(read_plain_hdf5(std::string(HANDGRAD_SOURCE_DIR) + "/tests/data/" + name)) {}

  bool has(const std::string& path) const { return file_.find("/" + path) != nullptr; }
  Shape shape(const std::string& path) const { return Shape(file_.find("/" + path)->shape); }
  std::vector<double> values(const std::string& path) const {
    const auto values = file_.values<double>("/" + path);
    return {values.begin(), values.end()};
  }
  double number(const std::string& path) const { return values(path).at(0); }
  /// An attribute of a group, integer or not.
  double attribute(const std::string& group, const std::string& name) const {
    const AttributeValue* value = file_.find_attribute("/" + group, name);
    if (value == nullptr) throw std::out_of_range(group + " has no attribute " + name);
    if (const auto* integer = std::get_if<std::int64_t>(value)) return static_cast<double>(*integer);
    return std::get<double>(*value);
  }
  bool has_attribute(const std::string& group, const std::string& name) const {
    return file_.find_attribute("/" + group, name) != nullptr;
  }
  std::vector<std::string> attributes(const std::string& group) const {
    std::vector<std::string> found;
    for (const Attribute& attribute : file_.attributes()) {
      if (attribute.group == "/" + group) found.push_back(attribute.name);
    }
    return found;
  }
  std::string text(const std::string& path) const {
    const auto bytes = file_.values<std::uint8_t>("/" + path);
    return {bytes.begin(), bytes.end()};
  }
  Tensor<double> tensor(const std::string& path) const {
    return Tensor<double>(shape(path), file_.values<double>("/" + path));
  }
  std::vector<Index> integers(const std::string& path) const {
    const auto values = file_.values<std::int64_t>("/" + path);
    return {values.begin(), values.end()};
  }
  std::vector<TokenId> tokens(const std::string& path) const {
    std::vector<TokenId> tokens;
    for (const Index id : integers(path)) tokens.push_back(static_cast<TokenId>(id));
    return tokens;
  }
  Mask mask(const std::string& path) const { return Mask(shape(path), file_.values<std::uint8_t>("/" + path)); }
  /// Number of scalars in a group, of whatever depth.
  Index scalars(const std::string& group) const {
    Index count = 0;
    for (const DatasetEntry& entry : file_.datasets()) {
      if (entry.path.starts_with("/" + group + "/")) count += Shape(entry.shape).size();
    }
    return count;
  }
  /// Names of the groups and datasets directly inside a group, sorted; of the file for an empty name.
  std::vector<std::string> names(const std::string& group) const {
    std::vector<std::string> found;
    const std::string prefix = group.empty() ? "/" : "/" + group + "/";
    for (const DatasetEntry& entry : file_.datasets()) {
      if (!entry.path.starts_with(prefix)) continue;
      const std::string name = entry.path.substr(prefix.size(), entry.path.find('/', prefix.size()) - prefix.size());
      if (found.empty() || found.back() != name) found.push_back(name);
    }
    return found;
  }

 private:
  Container file_;
};

}  // namespace handgrad::test
