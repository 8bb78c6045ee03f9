#pragma once

#include <algorithm>
#include <cerrno>
#include <functional>
#include <string>
#include <vector>

#include "handgrad/files/file_system.h"

namespace handgrad::test {

/// The real file system, with a counter of its calls and a hook that can make any of them fail.
class FailingFiles : public FileSystem {
 public:
  /// Receives the call's number, from 0, and its name. A result below 0 is returned instead of making the call.
  using Hook = std::function<int(int number, const std::string& name)>;

  explicit FailingFiles(Hook hook = {}) : hook_(std::move(hook)) {}

  Index longest_write = Index{1} << 40;  ///< Longer writes are cut short.
  std::vector<std::string> calls;

  int open(const std::string& path, Open how) override { return spoiled("open") ? error_ : real().open(path, how); }
  Index write(int file, std::span<const std::byte> bytes) override {
    const auto size = std::min(bytes.size(), static_cast<std::size_t>(longest_write));
    return spoiled("write") ? error_ : real().write(file, bytes.first(size));
  }
  int sync(int file) override { return spoiled("sync") ? error_ : real().sync(file); }
  Index size(int file) override { return spoiled("size") ? error_ : real().size(file); }
  int truncate(int file, Index size) override { return spoiled("truncate") ? error_ : real().truncate(file, size); }
  int close(int file) override {
    const int result = real().close(file);
    return spoiled("close") ? error_ : result;
  }
  int rename(const std::string& from, const std::string& to) override {
    return spoiled("rename") ? error_ : real().rename(from, to);
  }
  int remove(const std::string& path) override { return spoiled("remove") ? error_ : real().remove(path); }
  int sync_folder(const std::string& path) override {
    return spoiled("sync_folder") ? error_ : real().sync_folder(path);
  }
  int symlink(const std::string& target, const std::string& link) override {
    return spoiled("symlink") ? error_ : real().symlink(target, link);
  }
  int make_folder(const std::string& path) override {
    return spoiled("make_folder") ? error_ : real().make_folder(path);
  }
  int list(const std::string& folder, std::vector<std::string>& names) override {
    return spoiled("list") ? error_ : real().list(folder, names);
  }

 private:
  static FileSystem& real() { return *posix_files(); }
  bool spoiled(const std::string& name) {
    error_ = hook_ ? hook_(static_cast<int>(calls.size()), name) : 0;
    calls.push_back(name);
    return error_ < 0;
  }

  Hook hook_;
  int error_ = 0;
};

}  // namespace handgrad::test
