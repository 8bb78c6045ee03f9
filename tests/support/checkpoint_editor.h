#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "handgrad/files/file_system.h"
#include "handgrad/io/container_reader.h"
#include "handgrad/io/container_writer.h"

namespace handgrad::test {

/// The contents of a sealed file, which can be changed and sealed again, as by a program that knows the format.
class CheckpointEditor {
 public:
  explicit CheckpointEditor(const std::string& path) : path_(path), container_(Container::load(path)) {
    for (const DatasetEntry& entry : container_.datasets()) {
      const auto raw = container_.bytes_of(entry);
      data_[entry.path] = {entry.type, entry.shape, {raw.begin(), raw.end()}};
    }
    attributes_ = container_.attributes();
  }

  float* floats(const std::string& dataset) { return reinterpret_cast<float*>(data_.at(dataset).bytes.data()); }
  void remove(const std::string& dataset) { data_.erase(dataset); }
  void rename(const std::string& from, const std::string& to) {
    auto node = data_.extract(from);
    node.key() = to;
    data_.insert(std::move(node));
  }
  void set_shape(const std::string& dataset, std::vector<Index> shape) { data_.at(dataset).shape = std::move(shape); }
  void add(const std::string& dataset, std::vector<float> values) {
    const auto raw = std::as_bytes(std::span(values));
    data_[dataset] = {ElementType::float32, {static_cast<Index>(values.size())}, {raw.begin(), raw.end()}};
  }
  void set_text(const std::string& dataset, const std::string& text) {
    const auto raw = std::as_bytes(std::span(text));
    data_[dataset] = {ElementType::uint8, {static_cast<Index>(text.size())}, {raw.begin(), raw.end()}};
  }
  /// Replaces part of the stored config.
  void edit_config(const std::string& from, const std::string& to) {
    std::string text(container_.text("/config"));
    text.replace(text.find(from), from.size(), to);
    set_text("/config", text);
  }
  void set_attribute(const std::string& group, const std::string& name, AttributeValue value) {
    for (Attribute& a : attributes_) {
      if (a.group == group && a.name == name) a.value = value;
    }
  }

  void save() const {
    ContainerContents contents;
    for (const auto& [path, d] : data_) contents.datasets.push_back({path, d.type, d.shape, d.bytes.data()});
    contents.attributes = attributes_;
    write_container(posix_files(), path_, contents);
  }

 private:
  struct Dataset {
    ElementType type;
    std::vector<Index> shape;
    std::vector<std::byte> bytes;
  };

  std::string path_;
  Container container_;
  std::map<std::string, Dataset> data_;
  std::vector<Attribute> attributes_;
};

/// Changes a sealed file.
inline void edit_checkpoint(const std::string& path, const std::function<void(CheckpointEditor&)>& edit) {
  CheckpointEditor editor(path);
  edit(editor);
  editor.save();
}

}  // namespace handgrad::test
