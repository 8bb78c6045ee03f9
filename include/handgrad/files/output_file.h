#pragma once

#include <string>
#include <string_view>

#include "handgrad/files/files.h"

namespace handgrad {

/// The file that a write to `path` must replace, so that symbolic links stay links: the end of the chain of links that
/// `path` begins, which need not exist; `path` itself if it is no link. Throws DataError for a chain without an end.
std::string link_target(const std::string& path);

/// Writes text to an output that a user has named, and leaves it the kind of file that it is:
///
///   a regular file, or a new name   replaced whole or not at all, as write_durably does
///   a symbolic link                 its target is replaced; the link stays
///   a FIFO, a device, a socket      opened and written to; a FIFO waits for its reader
///   an open file (/dev/stdout,      written to at its end
///   /dev/fd/N, /proc/self/fd/N)
///
/// Throws DataError: what, path, reason.
void write_output(FileSystem* fs, const std::string& path, std::string_view text);

}  // namespace handgrad
