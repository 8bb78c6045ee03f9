#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "handgrad/core/types.h"

namespace handgrad::files {

/// The whole of a file or pipe. Throws DataError if it is missing, unreadable, a folder, or larger than `max_bytes`;
/// ResourceError if it does not fit in memory.
std::string read_file(const std::string& path, Index max_bytes = Index{1} << 40);

/// The same as bytes, aligned for any type; regular files only.
std::vector<std::byte> read_bytes(const std::string& path, Index max_bytes = Index{1} << 40);

}  // namespace handgrad::files
