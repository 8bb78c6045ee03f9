#include "handgrad/files/read_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <new>

#include "handgrad/core/errors.h"
#include "handgrad/files/file_system.h"

namespace handgrad::files {
namespace {

// A file descriptor, closed by its destructor.
struct Descriptor {
  int value = -1;
  explicit Descriptor(int file) : value(file) {}
  ~Descriptor() {
    if (value >= 0) ::close(value);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
};

void check_size(const std::string& path, Index size, Index max_bytes) {
  if (size > max_bytes) {
    fail("read", path, fmt::format("at most {} bytes are expected, it has {} or more", max_bytes, size));
  }
}

// Reads the file into `content`. The size of a regular file is known beforehand; for a pipe, `content` grows.
template <class Content>
void read_into(Content& content, const std::string& path, Index max_bytes, bool regular_only) {
  // O_NONBLOCK: opening a named pipe without a writer must not block.
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | (regular_only ? O_NONBLOCK : 0)));
  if (file.value < 0) fail("read", path, errno);
  struct stat info {};
  if (::fstat(file.value, &info) < 0) fail("read", path, errno);
  if (S_ISDIR(info.st_mode)) fail("read", path, EISDIR);
  const bool regular = S_ISREG(info.st_mode);
  if (regular_only && !regular) fail("read", path, "is not a regular file");
  const auto expected = static_cast<Index>(regular ? info.st_size : 0);
  check_size(path, expected, max_bytes);

  constexpr std::size_t chunk = 1 << 16;
  std::size_t size = 0;
  // One byte more than expected: the read that finds the end of the file needs room.
  content.resize(expected + 1);
  for (;;) {
    if (size == content.size()) content.resize(size + std::max(size / 2, chunk));
    const auto taken = ::read(file.value, content.data() + size, content.size() - size);
    if (taken < 0 && errno == EINTR) continue;
    if (taken < 0) fail("read", path, errno);
    if (taken == 0) break;
    size += taken;
    check_size(path, static_cast<Index>(size), max_bytes);
  }
  content.resize(size);
}

template <class Content>
Content read_whole(const std::string& path, Index max_bytes, bool regular_only) {
  Content content;
  try {
    read_into(content, path, max_bytes, regular_only);
  } catch (const std::bad_alloc&) {
    struct stat info {};
    const auto bytes = ::stat(path.c_str(), &info) == 0 ? static_cast<std::uint64_t>(info.st_size) : 0;
    throw ResourceError(fmt::format("cannot read {}: no memory for its {} bytes", path, bytes), bytes);
  }
  return content;
}

}  // namespace

std::string read_file(const std::string& path, Index max_bytes) {
  return read_whole<std::string>(path, max_bytes, false);
}

std::vector<std::byte> read_bytes(const std::string& path, Index max_bytes) {
  return read_whole<std::vector<std::byte>>(path, max_bytes, true);
}

}  // namespace handgrad::files
