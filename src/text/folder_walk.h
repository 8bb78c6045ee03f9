#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "handgrad/text/corpus.h"

namespace handgrad {

/// A file to be read, and its size.
struct SourceFile {
  std::filesystem::path path;
  std::uintmax_t size_bytes;
};

/// The text files below a folder, in the byte order of their paths, each file once. Everything else is counted in
/// `passed_over`. Throws DataError.
std::vector<SourceFile> text_files_below(const std::filesystem::path& folder, PassedOver& passed_over);

/// The size of a file. Throws DataError.
std::uintmax_t file_size_of(const std::filesystem::path& path);

}  // namespace handgrad
