#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "handgrad/core/types.h"

namespace handgrad {

/// The system calls that the library makes when it writes. A program or a test may pass another implementation, for
/// example one that fails on purpose. A call returns 0 or the stated value on success, and -errno on failure.
class FileSystem {
 public:
  enum class Open { create, append };

  virtual ~FileSystem() = default;
  /// Returns a descriptor. `create`: the file must not exist; `append`: it is created if absent, and every write goes
  /// to its end.
  virtual int open(const std::string& path, Open how) = 0;
  /// Returns the number of bytes written, which may be fewer than given.
  virtual Index write(int file, std::span<const std::byte> bytes) = 0;
  virtual int sync(int file) = 0;
  /// Returns the number of bytes in the file.
  virtual Index size(int file) = 0;
  virtual int truncate(int file, Index size_bytes) = 0;
  virtual int close(int file) = 0;
  virtual int rename(const std::string& from, const std::string& to) = 0;
  virtual int remove(const std::string& path) = 0;
  /// Makes renames, new files and removals in a folder durable.
  virtual int sync_folder(const std::string& path) = 0;
  virtual int symlink(const std::string& target, const std::string& link_path) = 0;
  virtual int make_folder(const std::string& path) = 0;
  /// Gives the names in a folder, sorted, without "." and "..".
  virtual int list(const std::string& folder, std::vector<std::string>& names) = 0;
};

/// The file system of the machine. It has no state; any thread may use it.
FileSystem* posix_files();

namespace files {

/// "no space left on device" for ENOSPC, in English in every locale.
std::string describe_errno(int error);

/// Throws DataError: "cannot <operation> <path>: <reason>". An error number is a value of errno.
[[noreturn]] void fail(std::string_view operation, const std::string& path, std::string_view reason);
[[noreturn]] void fail(std::string_view operation, const std::string& path, int error);

/// The folder part of a path; "." if it has none.
std::string folder_of(const std::string& path);

}  // namespace files
}  // namespace handgrad
