#pragma once

#include <string>
#include <string_view>

#include "handgrad/files/file_system.h"

namespace handgrad::files {

/// Appends lines to a file without a buffer. Lines that `append` wrote survive the end of the process; lines that
/// `sync` covered survive the end of the machine.
class Appender {
 public:
  /// Opens the file, or creates it. Throws DataError.
  Appender(FileSystem* fs, std::string path);
  ~Appender();
  Appender(const Appender&) = delete;
  Appender& operator=(const Appender&) = delete;

  /// Appends the line and a newline. Throws DataError, after it has cut off what was written of the line (if the system
  /// allows).
  void append(std::string_view line);
  /// Syncs the file, and its folder the first time. Throws DataError.
  void sync();
  /// Cuts the file to its first `size_bytes` bytes. Throws RangeError beyond its size, DataError.
  void truncate(Index size_bytes);
  Index size_bytes() const { return size_bytes_; }
  const std::string& path() const { return path_; }

 private:
  FileSystem* fs_;
  std::string path_;
  int file_ = -1;
  Index size_bytes_ = 0;
  bool folder_synced_ = false;
};

}  // namespace handgrad::files
