#include "handgrad/files/file_system.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstring>

#include "files/system_calls.h"
#include "handgrad/core/errors.h"

namespace handgrad {
namespace {

using files::outcome;

class PosixFiles final : public FileSystem {
 public:
  int open(const std::string& path, Open how) override {
    const int flags = how == Open::create ? O_CREAT | O_EXCL : O_CREAT | O_APPEND;
    return outcome(files::open_for_writing(path, O_WRONLY | flags));
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

}  // namespace

FileSystem* posix_files() {
  static PosixFiles files;
  return &files;
}

namespace files {

std::string describe_errno(int error) {
  const char* text = ::strerrordesc_np(error);
  std::string message = text != nullptr ? text : fmt::format("error {}", error);
  const bool acronym = message.size() > 1 && std::isupper(static_cast<unsigned char>(message[1]));
  if (!acronym) message[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(message[0])));
  return message;
}

void fail(std::string_view operation, const std::string& path, std::string_view reason) {
  throw DataError(fmt::format("cannot {} {}: {}", operation, path, reason));
}

void fail(std::string_view operation, const std::string& path, int error) {
  fail(operation, path, describe_errno(error));
}

std::string folder_of(const std::string& path) {
  const std::size_t slash = path.find_last_of('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

}  // namespace files
}  // namespace handgrad
