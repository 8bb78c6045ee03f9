#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "handgrad/text/corpus.h"

namespace handgrad {

/// A file to be read, and the size that it has now.
struct SourceFile {
  std::filesystem::path path;
  std::uintmax_t size_bytes;
};

/// The text files below a folder, in the order of their paths' bytes, each file once; counts all else. Throws
/// DataError.
std::vector<SourceFile> text_files_below(const std::filesystem::path& folder, PassedOver& passed_over);

/// Throws DataError.
std::uintmax_t file_size_of(const std::filesystem::path& path);

/// "cannot read PATH: reason"
[[noreturn]] void cannot_read(const std::filesystem::path& path, const std::error_code& reason);

}  // namespace handgrad
