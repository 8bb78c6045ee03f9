#pragma once

#include <string>
#include <string_view>

#include "handgrad/files/file_system.h"

namespace handgrad::files {

/// Follows symbolic links from `path` and returns the last path, which need not exist; `path` itself if it is not a
/// link. Replacing that file keeps the links. Throws DataError for a cycle of links.
std::string link_target(const std::string& path);

/// Writes text to an output path given by a user. The kind of file does not change:
///
///   a regular file, or a new name   replaced atomically, as by write_durably
///   a symbolic link                 its target is replaced; the link stays
///   a FIFO, a device, a socket      opened and written to; a FIFO blocks until it has a reader
///   an open file (/dev/stdout,      written to at its end
///   /dev/fd/N, /proc/self/fd/N)
///
/// Throws DataError: operation, path, reason.
void write_output(FileSystem* fs, const std::string& path, std::string_view text);

}  // namespace handgrad::files
