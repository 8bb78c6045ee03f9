#include "handgrad/files/run_lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include "files/system_calls.h"
#include "handgrad/core/errors.h"

namespace handgrad::files {

RunLock::RunLock(const std::string& folder) {
  file_ = open_for_writing(folder + "/lock", O_RDWR | O_CREAT);
  if (file_ < 0) fail("lock", folder, errno);
  const int result = retried([&] { return outcome(::flock(file_, LOCK_EX | LOCK_NB)); });
  if (result == 0) return;
  ::close(file_);
  if (result != -EWOULDBLOCK) fail("lock", folder, -result);
  throw DataError(fmt::format("cannot lock {}: another process is writing to this run", folder));
}

RunLock::~RunLock() { ::close(file_); }

}  // namespace handgrad::files
