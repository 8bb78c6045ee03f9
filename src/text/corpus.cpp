#include "handgrad/text/corpus.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <new>

#include "handgrad/core/errors.h"
#include "handgrad/text/utf8.h"

namespace handgrad {
namespace {

namespace fs = std::filesystem;

/// A file to be read, and the size that it has now.
struct Source {
  fs::path path;
  std::uintmax_t size_bytes;
};

[[noreturn]] void cannot_read(const fs::path& path, const std::error_code& reason) {
  throw DataError(fmt::format("cannot read {}: {}", path.string(), reason.message()));
}

bool is_text_name(const fs::path& path) {
  std::string extension = path.extension().string();
  for (char& c : extension) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  constexpr std::array<std::string_view, 3> known = {".txt", ".md", ".text"};
  return std::find(known.begin(), known.end(), extension) != known.end();
}

std::uintmax_t size_of(const fs::path& path) {
  std::error_code error;
  const std::uintmax_t size = fs::file_size(path, error);
  if (error) cannot_read(path, error);
  return size;
}

std::vector<Source> text_files_below(const fs::path& folder) {
  std::vector<Source> found;
  std::error_code error;
  fs::recursive_directory_iterator entry(folder, error);
  if (error) cannot_read(folder, error);
  // increment() goes past what it cannot open only by ending the walk: the error names the folder to look in.
  for (; entry != fs::recursive_directory_iterator(); entry.increment(error)) {
    const fs::path path = entry->path();
    if (is_text_name(path) && entry->is_regular_file(error)) found.push_back({path, size_of(path)});
    error.clear();
  }
  if (error) throw DataError(fmt::format("cannot read all folders below {}: {}", folder.string(), error.message()));
  std::sort(found.begin(), found.end(),
            [](const Source& a, const Source& b) { return a.path.string() < b.path.string(); });
  return found;
}

std::vector<Source> sources_of(const fs::path& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (status.type() == fs::file_type::not_found) {
    throw DataError(fmt::format("no such file or folder: {}", path.string()));
  }
  if (error) cannot_read(path, error);
  if (fs::is_directory(status)) {
    std::vector<Source> found = text_files_below(path);
    if (found.empty()) {
      throw DataError(fmt::format("no text in folder {}: no file below it ends in .txt, .md or .text", path.string()));
    }
    if (std::all_of(found.begin(), found.end(), [](const Source& s) { return s.size_bytes == 0; })) {
      throw DataError(fmt::format("no text in folder {}: all {} text files are empty", path.string(), found.size()));
    }
    return found;
  }
  // A pipe or a device may have no end, and opening one may block.
  if (!fs::is_regular_file(status)) {
    throw DataError(fmt::format("not a regular file or folder: {}", path.string()));
  }
  const std::uintmax_t size = size_of(path);
  if (size == 0) throw DataError(fmt::format("empty file: {}", path.string()));
  return {{path, size}};
}

void append_file(const Source& source, std::string& text) {
  errno = 0;
  std::ifstream file(source.path, std::ios::binary);
  if (!file) cannot_read(source.path, {errno, std::generic_category()});
  const std::size_t before = text.size();
  text.resize(before + static_cast<std::size_t>(source.size_bytes));
  file.read(text.data() + before, static_cast<std::streamsize>(source.size_bytes));
  const auto received = static_cast<std::uintmax_t>(file.gcount());
  if (received != source.size_bytes) {
    throw DataError(
        fmt::format("cannot read {}: {} of {} bytes came", source.path.string(), received, source.size_bytes));
  }
  if (file.peek() != std::ifstream::traits_type::eof()) {
    throw DataError(fmt::format("{} has grown while it was read", source.path.string()));
  }
}

}  // namespace

Corpus read_corpus(std::span<const std::string> paths) {
  if (paths.empty()) throw DataError("no text files given");
  std::vector<Source> sources;
  for (const std::string& path : paths) {
    for (Source& source : sources_of(path)) sources.push_back(std::move(source));
  }
  constexpr auto limit = static_cast<std::uintmax_t>(std::numeric_limits<std::ptrdiff_t>::max());
  std::uintmax_t total = 0;
  for (const Source& source : sources) {
    if (source.size_bytes > limit - total) throw ResourceError("text files: more bytes than can be addressed", limit);
    total += source.size_bytes;
  }
  Corpus corpus;
  try {
    corpus.text.reserve(static_cast<std::size_t>(total));
  } catch (const std::exception&) {  // bad_alloc or length_error
    throw ResourceError(fmt::format("text files: no memory for {} bytes", total), total);
  }
  for (const Source& source : sources) {
    append_file(source, corpus.text);
    corpus.files.push_back({source.path.string(), static_cast<Index>(source.size_bytes)});
  }
  return corpus;
}

void check_utf8(const Corpus& corpus) {
  std::string_view rest = corpus.text;
  for (const CorpusFile& file : corpus.files) {
    check_utf8(rest.substr(0, static_cast<std::size_t>(file.size_bytes)), file.path);
    rest.remove_prefix(static_cast<std::size_t>(file.size_bytes));
  }
}

}  // namespace handgrad
