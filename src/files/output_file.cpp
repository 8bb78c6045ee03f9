#include "handgrad/files/output_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "handgrad/files/durable_write.h"

namespace handgrad::files {
namespace {

constexpr int most_links = 40;  // the limit of the kernel

// Links in these folders lead to open files; the text of such a link is not a path.
bool names_an_open_file(const std::string& path) {
  return path.starts_with("/proc/") || path.starts_with("/dev/fd/") || path == "/dev/stdout" || path == "/dev/stderr";
}

// Follows links to the last path, or to the first that names an open file.
std::string end_of_links(const std::string& path) {
  std::string place = path;
  for (int links = 0; links < most_links; ++links) {
    std::error_code error;
    if (names_an_open_file(place) || !std::filesystem::is_symlink(place, error)) return place;
    const std::filesystem::path target = std::filesystem::read_symlink(place, error);
    if (error) fail("write", path, error.value());
    // A relative target starts from the link's folder; an absolute one replaces it.
    place = (std::filesystem::path(place).parent_path() / target).string();
  }
  fail("write", path, ELOOP);
}

void write_in_place(const std::string& path, std::string_view text) {
  const int file = ::open(path.c_str(), O_WRONLY | O_APPEND | O_NOCTTY | O_CLOEXEC);
  if (file < 0) fail("write", path, errno);
  int error = 0;
  while (!text.empty() && error == 0) {
    const auto taken = ::write(file, text.data(), text.size());
    if (taken > 0) text.remove_prefix(taken);
    if (taken == 0) error = EIO;
    if (taken < 0 && errno != EINTR) error = errno;
  }
  if (::close(file) != 0 && error == 0 && errno != EINTR) error = errno;
  if (error != 0) fail("write", path, error);
}

}  // namespace

std::string link_target(const std::string& path) { return end_of_links(path); }

void write_output(FileSystem* fs, const std::string& path, std::string_view text) {
  const std::string place = end_of_links(path);
  struct stat info {};
  const bool exists = ::stat(place.c_str(), &info) == 0;
  if (exists && S_ISDIR(info.st_mode)) fail("write", path, EISDIR);
  if (exists && (!S_ISREG(info.st_mode) || names_an_open_file(place))) return write_in_place(place, text);
  write_durably(fs, place, text);
  if (exists) ::chmod(place.c_str(), info.st_mode & 07777);  // keep the old file's mode; a failure is harmless
}

}  // namespace handgrad::files
