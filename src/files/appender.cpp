#include "handgrad/files/appender.h"

#include <fmt/format.h>

#include <utility>

#include "files/system_calls.h"
#include "handgrad/core/errors.h"

namespace handgrad::files {

Appender::Appender(FileSystem* fs, std::string path) : fs_(fs), path_(std::move(path)) {
  file_ = retried([&] { return fs_->open(path_, FileSystem::Open::append); });
  check(file_, "open", path_);
  const Index size = retried([&] { return fs_->size(file_); });
  if (size < 0) {
    fs_->close(file_);
    fail("open", path_, static_cast<int>(-size));
  }
  size_bytes_ = size;
}

Appender::~Appender() { fs_->close(file_); }

void Appender::append(std::string_view line) {
  std::string row(line);
  row += '\n';
  const int written = write_all(fs_, file_, std::as_bytes(std::span(row)));
  if (written < 0) {
    retried([&] { return fs_->truncate(file_, size_bytes_); });
    fail("write", path_, -written);
  }
  size_bytes_ += std::ssize(row);
}

void Appender::sync() {
  check(retried([&] { return fs_->sync(file_); }), "write", path_);
  if (folder_synced_) return;
  check(retried([&] { return fs_->sync_folder(folder_of(path_)); }), "write", path_);
  folder_synced_ = true;
}

void Appender::truncate(Index size_bytes) {
  if (size_bytes < 0 || size_bytes > size_bytes_) {
    throw RangeError(fmt::format("cannot cut {} to {} bytes: it has {}", path_, size_bytes, size_bytes_));
  }
  check(retried([&] { return fs_->truncate(file_, size_bytes); }), "cut", path_);
  size_bytes_ = size_bytes;
}

}  // namespace handgrad::files
