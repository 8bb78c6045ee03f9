#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "handgrad/core/types.h"

namespace handgrad {

/// What the library asks of a file system when it writes: thin calls that fail as the system's do, so that a test can
/// hand in one that fails, tears or loses on purpose. Calls return 0 (or what is stated), or -errno.
class FileSystem {
 public:
  enum class Open { create, append };

  virtual ~FileSystem() = default;
  /// A descriptor. `create`: the name must be new; `append`: made if absent, writes go to its end.
  virtual int open(const std::string& path, Open how) = 0;
  /// Bytes taken, which may be fewer than given.
  virtual Index write(int file, std::span<const std::byte> bytes) = 0;
  virtual int sync(int file) = 0;
  /// Bytes in the file.
  virtual Index size(int file) = 0;
  virtual int truncate(int file, Index size_bytes) = 0;
  virtual int close(int file) = 0;
  virtual int rename(const std::string& from, const std::string& to) = 0;
  virtual int remove(const std::string& path) = 0;
  /// Makes what was renamed, made or removed in a folder durable.
  virtual int sync_folder(const std::string& path) = 0;
  virtual int symlink(const std::string& target, const std::string& link_path) = 0;
  virtual int make_folder(const std::string& path) = 0;
  /// Names in a folder, sorted, without "." and "..".
  virtual int list(const std::string& folder, std::vector<std::string>& names) = 0;
};

/// The real one. It has no state and may be used from any thread.
FileSystem* posix_files();

/// "no space left on device" for ENOSPC, in English whatever the locale.
std::string describe_errno(int error);

/// The folder part of a path; "." if it has none.
std::string folder_of(const std::string& path);

/// Replaces or makes `path` with these bytes, whole or not at all: a temporary file beside it, write, fsync, rename,
/// fsync of the folder. On return the file is durable. On a DataError (what, path, reason) the temporary file is gone
/// and the old one as it was (or, if only the folder's fsync failed, replaced).
void write_durably(FileSystem* fs, const std::string& path, std::span<const std::byte> bytes);
void write_durably(FileSystem* fs, const std::string& path, std::string_view text);

/// Makes `link_path` a symbolic link to `target_name`, a name relative to the link's folder, replacing an older link in
/// one step, durably. Throws DataError.
void replace_link(FileSystem* fs, const std::string& target_name, const std::string& link_path);

/// Makes a folder and its parents, durably; one that exists already will do. Throws DataError.
void make_folders(FileSystem* fs, const std::string& path);

/// Names in a folder, sorted. Throws DataError.
std::vector<std::string> list_folder(FileSystem* fs, const std::string& folder);

/// Removes a file or a link; one that is absent already will do. Throws DataError.
void remove_file(FileSystem* fs, const std::string& path);

/// Renames within a file system, durably, replacing a file of the new name. Throws DataError.
void rename_file(FileSystem* fs, const std::string& from, const std::string& to);

/// Removes what a killed process's writes left in a folder. Only for the folder's one writer.
void remove_temporaries(FileSystem* fs, const std::string& folder);

/// Writes to the end of a file, a line at a time, straight through: what `append` took survives the process, what
/// `sync` covered survives the machine.
class Appender {
 public:
  /// Opens or makes the file. Throws DataError.
  Appender(FileSystem* fs, std::string path);
  ~Appender();
  Appender(const Appender&) = delete;
  Appender& operator=(const Appender&) = delete;

  /// Appends the line and a newline. On a DataError nothing of the line stays in the file, if the system allows.
  void append(std::string_view line);
  /// fsync of the file, and of its folder the first time. Throws DataError.
  void sync();
  /// Cuts the file to its first bytes. Throws RangeError beyond its size, DataError.
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

/// The whole of a file (or of a pipe). Throws DataError if it is missing, unreadable, a folder, or larger than
/// `max_bytes`; ResourceError if it does not fit in memory.
std::string read_file(const std::string& path, Index max_bytes = Index{1} << 40);
/// The same as bytes, aligned for any type; regular files only.
std::vector<std::byte> read_bytes(const std::string& path, Index max_bytes = Index{1} << 40);

/// Holds a run folder for one writer, by flock on the file `lock` in it; the lock dies with its process.
class RunLock {
 public:
  /// Throws DataError if another process (or RunLock) holds the folder, or the lock file cannot be made.
  explicit RunLock(const std::string& folder);
  ~RunLock();
  RunLock(const RunLock&) = delete;
  RunLock& operator=(const RunLock&) = delete;

 private:
  int file_ = -1;
};

}  // namespace handgrad
