#pragma once

#include <cerrno>
#include <span>
#include <string>
#include <string_view>

#include "handgrad/files/file_system.h"

namespace handgrad::files {

/// Throws as fail() if `result` is -errno.
inline void check(int result, std::string_view operation, const std::string& path) {
  if (result < 0) fail(operation, path, -result);
}

/// The result of a system call: -errno if it is negative.
inline int outcome(int result) { return result < 0 ? -errno : result; }

/// Calls again as long as a signal interrupts the call.
template <class Call>
auto retried(Call call) {
  auto result = call();
  while (result == -EINTR) result = call();
  return result;
}

/// Writes all of the bytes; returns 0 or -errno. A write of 0 bytes is an error, since it would be repeated for ever.
int write_all(FileSystem* fs, int file, std::span<const std::byte> bytes);

/// Opens a file for writing under a descriptor above those of the standard streams: if one of these is closed, the next
/// file opened gets its number, and what the program prints would be written into that file. Returns -1 and sets errno
/// on failure.
int open_for_writing(const std::string& path, int flags);

}  // namespace handgrad::files
