#include "files/system_calls.h"

#include <fcntl.h>
#include <unistd.h>

namespace handgrad::files {

int write_all(FileSystem* fs, int file, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const Index written = retried([&] { return fs->write(file, bytes); });
    if (written < 0) return static_cast<int>(written);
    if (written == 0) return -EIO;
    bytes = bytes.subspan(written);
  }
  return 0;
}

int open_for_writing(const std::string& path, int flags) {
  constexpr int first_number = STDERR_FILENO + 1;
  const int file = ::open(path.c_str(), flags | O_CLOEXEC, 0666);
  if (file < 0 || file >= first_number) return file;
  const int moved = ::fcntl(file, F_DUPFD_CLOEXEC, first_number);
  const int error = errno;
  ::close(file);
  errno = error;
  return moved;
}

}  // namespace handgrad::files
