#pragma once

#include <string>

namespace handgrad::files {

/// Reserves a run folder for one writer, by flock on its file `lock`. The lock ends with the process.
class RunLock {
 public:
  /// Throws DataError if another process or another RunLock holds the folder, or if the lock file cannot be created.
  explicit RunLock(const std::string& folder);
  ~RunLock();
  RunLock(const RunLock&) = delete;
  RunLock& operator=(const RunLock&) = delete;

 private:
  int file_ = -1;
};

}  // namespace handgrad::files
