#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <new>

#include "handgrad/core/errors.h"
#include "handgrad/files/files.h"

namespace handgrad {
namespace {

int outcome(int result) { return result < 0 ? -errno : result; }

// A program whose standard streams are closed gets their numbers for the next files, and prints into them. What is
// written to never has such a number. Returns a descriptor, or -1 with errno.
int open_for_writing(const std::string& path, int flags) {
  constexpr int first_of_files = STDERR_FILENO + 1;
  const int file = ::open(path.c_str(), flags | O_CLOEXEC, 0666);
  if (file < 0 || file >= first_of_files) return file;
  const int moved = ::fcntl(file, F_DUPFD_CLOEXEC, first_of_files);
  const int error = errno;
  ::close(file);
  errno = error;
  return moved;
}

class PosixFiles final : public FileSystem {
 public:
  int open(const std::string& path, Open how) override {
    const int flags = how == Open::create ? O_CREAT | O_EXCL : O_CREAT | O_APPEND;
    return outcome(open_for_writing(path, O_WRONLY | flags));
  }
  Index write(int file, std::span<const std::byte> bytes) override {
    const auto taken = ::write(file, bytes.data(), bytes.size());
    return taken < 0 ? -errno : static_cast<Index>(taken);
  }
  int sync(int file) override { return outcome(::fsync(file)); }
  Index size(int file) override {
    struct stat info {};
    return ::fstat(file, &info) < 0 ? -errno : static_cast<Index>(info.st_size);
  }
  int truncate(int file, Index size_bytes) override { return outcome(::ftruncate(file, size_bytes)); }
  int close(int file) override { return outcome(::close(file)); }
  int rename(const std::string& from, const std::string& to) override {
    return outcome(::rename(from.c_str(), to.c_str()));
  }
  int remove(const std::string& path) override { return outcome(::unlink(path.c_str())); }
  int sync_folder(const std::string& path) override {
    const int folder = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0) return -errno;
    const int result = outcome(::fsync(folder));
    ::close(folder);
    return result;
  }
  int symlink(const std::string& target, const std::string& link_path) override {
    return outcome(::symlink(target.c_str(), link_path.c_str()));
  }
  int make_folder(const std::string& path) override { return outcome(::mkdir(path.c_str(), 0777)); }
  int list(const std::string& folder, std::vector<std::string>& names) override {
    DIR* stream = ::opendir(folder.c_str());
    if (stream == nullptr) return -errno;
    names.clear();
    errno = 0;
    while (const dirent* entry = ::readdir(stream)) {
      const std::string name = entry->d_name;
      if (name != "." && name != "..") names.push_back(name);
    }
    const int error = errno;
    ::closedir(stream);
    std::sort(names.begin(), names.end());
    return -error;
  }
};

// A descriptor that closes itself.
struct Descriptor {
  int value = -1;
  explicit Descriptor(int file) : value(file) {}
  ~Descriptor() {
    if (value >= 0) ::close(value);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
};

[[noreturn]] void cannot_read(const std::string& path, const std::string& reason) {
  throw DataError(fmt::format("cannot read {}: {}", path, reason));
}

void check_size(const std::string& path, Index size, Index max_bytes) {
  if (size > max_bytes) {
    cannot_read(path, fmt::format("{} bytes or more, at most {} are expected", size, max_bytes));
  }
}

// Fills `content` with the file. A regular file's size is known and asked for at once; a pipe's grows as it is read.
template <class Content>
void read_into(Content& content, const std::string& path, Index max_bytes, bool regular_only) {
  // Without O_NONBLOCK, opening a named pipe that nobody writes to would wait for ever.
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | (regular_only ? O_NONBLOCK : 0)));
  if (file.value < 0) cannot_read(path, describe_errno(errno));
  struct stat info {};
  if (::fstat(file.value, &info) < 0) cannot_read(path, describe_errno(errno));
  if (S_ISDIR(info.st_mode)) cannot_read(path, "it is a folder");
  const bool regular = S_ISREG(info.st_mode);
  if (regular_only && !regular) cannot_read(path, "it is not a regular file");
  const auto expected = static_cast<Index>(regular ? info.st_size : 0);
  check_size(path, expected, max_bytes);

  constexpr std::size_t chunk = 1 << 16;
  std::size_t size = 0;
  // One byte more than expected, so that the end of the file is met without growing.
  content.resize(static_cast<std::size_t>(expected) + 1);
  for (;;) {
    if (size == content.size()) content.resize(size + std::max(size / 2, chunk));
    const auto taken = ::read(file.value, content.data() + size, content.size() - size);
    if (taken < 0 && errno == EINTR) continue;
    if (taken < 0) cannot_read(path, describe_errno(errno));
    if (taken == 0) break;
    size += static_cast<std::size_t>(taken);
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

FileSystem* posix_files() {
  static PosixFiles files;
  return &files;
}

std::string read_file(const std::string& path, Index max_bytes) {
  return read_whole<std::string>(path, max_bytes, false);
}

std::vector<std::byte> read_bytes(const std::string& path, Index max_bytes) {
  return read_whole<std::vector<std::byte>>(path, max_bytes, true);
}

RunLock::RunLock(const std::string& folder) {
  const std::string path = folder + "/lock";
  file_ = open_for_writing(path, O_RDWR | O_CREAT);
  if (file_ < 0) throw DataError(fmt::format("cannot lock {}: {}", folder, describe_errno(errno)));
  int result = 0;
  do {
    result = outcome(::flock(file_, LOCK_EX | LOCK_NB));
  } while (result == -EINTR);
  if (result == 0) return;
  ::close(file_);
  throw DataError(result == -EWOULDBLOCK ? fmt::format("cannot lock {}: another process is writing to this run", folder)
                                         : fmt::format("cannot lock {}: {}", folder, describe_errno(-result)));
}

RunLock::~RunLock() { ::close(file_); }

}  // namespace handgrad
