#include "handgrad/text/corpus.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <limits>
#include <new>
#include <set>

#include "handgrad/core/errors.h"
#include "handgrad/files/encoding.h"
#include "handgrad/files/file_system.h"
#include "handgrad/text/encoding_check.h"
#include "text/folder_walk.h"

namespace handgrad {
namespace {

namespace fs = std::filesystem;

// A hint for names with characters that a shell would expand or that Windows uses as a separator.
std::string name_hint(const std::string& path) {
  if (path.find('\\') != std::string::npos) {
    return "; a backslash is part of the name: folders are separated by slashes";
  }
  if (path.find("/~") != std::string::npos || path.starts_with("~") || path.find_first_of("*?$") != std::string::npos) {
    return "; ~, *, ? and $ are part of the name and not expanded: name the file, or a folder of .txt and .md files";
  }
  return "";
}

std::vector<SourceFile> sources_of(const fs::path& path, PassedOver& passed_over) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (status.type() == fs::file_type::not_found) {
    throw DataError(fmt::format("no such file or folder: {}{}", path.string(), name_hint(path.string())));
  }
  if (error) files::fail("read", path.string(), error.value());
  if (fs::is_directory(status)) {
    std::vector<SourceFile> found = text_files_below(path, passed_over);
    if (found.empty()) {
      throw DataError(fmt::format("no text in folder {}: no file below it ends in .txt, .md or .text", path.string()));
    }
    if (std::all_of(found.begin(), found.end(), [](const SourceFile& s) { return s.size_bytes == 0; })) {
      throw DataError(fmt::format("no text in folder {}: all {} text files are empty", path.string(), found.size()));
    }
    return found;
  }
  // Not a pipe or a device: it may have no end, and opening it may block.
  if (!fs::is_regular_file(status)) {
    throw DataError(fmt::format("not a regular file or folder: {}", path.string()));
  }
  const std::uintmax_t size = file_size_of(path);
  if (size == 0) throw DataError(fmt::format("empty file: {}", path.string()));
  return {{path, size}};
}

void append_file(const SourceFile& source, std::string& text) {
  errno = 0;
  std::ifstream file(source.path, std::ios::binary);
  if (!file) files::fail("read", source.path.string(), errno);
  const std::size_t before = text.size();
  text.resize(before + source.size_bytes);
  file.read(text.data() + before, static_cast<std::streamsize>(source.size_bytes));
  const auto received = static_cast<std::uintmax_t>(file.gcount());
  if (received != source.size_bytes) {
    files::fail("read", source.path.string(),
                fmt::format("only {} of {} bytes were read", received, source.size_bytes));
  }
  if (file.peek() != std::ifstream::traits_type::eof()) {
    throw DataError(fmt::format("{} grew while it was read", source.path.string()));
  }
}

std::vector<SourceFile> all_sources(std::span<const std::string> paths, PassedOver& passed_over) {
  if (paths.empty()) throw DataError("no text files given");
  std::vector<SourceFile> sources;
  for (const std::string& path : paths) {
    for (SourceFile& source : sources_of(path, passed_over)) sources.push_back(std::move(source));
  }
  return sources;
}

std::uintmax_t total_bytes(const std::vector<SourceFile>& sources) {
  constexpr auto limit = static_cast<std::uintmax_t>(std::numeric_limits<std::ptrdiff_t>::max());
  std::uintmax_t total = 0;
  for (const SourceFile& source : sources) {
    if (source.size_bytes > limit - total) throw ResourceError("text files: more bytes than can be addressed", limit);
    total += source.size_bytes;
  }
  return total;
}

}  // namespace

Index corpus_size_bytes(std::span<const std::string> paths) {
  PassedOver passed_over;
  return static_cast<Index>(total_bytes(all_sources(paths, passed_over)));
}

Corpus read_corpus(std::span<const std::string> paths) {
  Corpus corpus;
  const std::vector<SourceFile> sources = all_sources(paths, corpus.passed_over);
  const std::uintmax_t total = total_bytes(sources);
  try {
    corpus.text.reserve(total);
  } catch (const std::exception&) {  // bad_alloc or length_error
    throw ResourceError(fmt::format("text files: no memory for {} bytes", total), total);
  }
  for (const SourceFile& source : sources) {
    append_file(source, corpus.text);
    corpus.files.push_back({source.path.string(), static_cast<Index>(source.size_bytes)});
  }
  return corpus;
}

namespace {

// Calls f(file, its text) for every file.
template <class F>
void for_each_file(const Corpus& corpus, F f) {
  std::string_view rest = corpus.text;
  for (const CorpusFile& file : corpus.files) {
    f(file, rest.substr(0, file.size_bytes));
    rest.remove_prefix(file.size_bytes);
  }
}

// A unique name of a file, independent of links to it.
std::string own_name(const CorpusFile& file) {
  std::error_code error;
  const fs::path path = fs::canonical(file.path, error);
  return error ? file.path : path.string();
}

std::vector<std::string> repeated_files(const Corpus& corpus) {
  std::set<std::string> seen;
  std::vector<std::string> repeated;
  for (const CorpusFile& file : corpus.files) {
    if (!seen.insert(own_name(file)).second) repeated.push_back(file.path);
  }
  return repeated;
}

}  // namespace

void check_utf8(const Corpus& corpus) {
  for_each_file(
      corpus, [](const CorpusFile& file, std::string_view text) { text::check_encoding(text, file.path, file.path); });
}

std::string text::counted(Index count, std::string_view singular, std::string_view plural) {
  if (count == 1) return fmt::format("1 {}", singular);
  return plural.empty() ? fmt::format("{} {}s", count, singular) : fmt::format("{} {}", count, plural);
}

std::string describe_files(const Corpus& corpus) {
  std::string text = fmt::format("{}, {}", text::counted(std::ssize(corpus.files), "file"),
                                 text::counted(std::ssize(corpus.text), "byte"));
  const PassedOver& p = corpus.passed_over;
  std::vector<std::string> parts;
  const auto add = [&](Index count, std::string_view one, std::string_view many) {
    if (count > 0) parts.push_back(text::counted(count, one, many));
  };
  add(p.hidden, "hidden name", "hidden names");
  add(p.other_names, "file with another ending", "files with other endings");
  add(p.same_file, "link to a file that is read", "links to files that are read");
  add(p.links_to_folders, "link to a folder", "links to folders");
  add(p.runs, "run folder", "run folders");
  add(p.not_regular, "pipe, device or broken link", "pipes, devices or broken links");
  if (!parts.empty()) text += fmt::format("; passed over: {}", fmt::join(parts, ", "));
  if (p.empty > 0)
    text += fmt::format("; {}", text::counted(p.empty, "of the files is empty", "of the files are empty"));
  return text;
}

std::vector<std::string> files_in_both(std::span<const CorpusFile> a, std::span<const CorpusFile> b) {
  std::set<std::string> names;
  for (const CorpusFile& file : a) names.insert(own_name(file));
  std::vector<std::string> both;
  for (const CorpusFile& file : b) {
    if (names.contains(own_name(file))) both.push_back(file.path);
  }
  return both;
}

std::vector<std::string> text_notes(const Corpus& corpus) {
  Index marked = 0, crlf = 0;
  std::vector<std::string> notes;
  for_each_file(corpus, [&](const CorpusFile& file, std::string_view text) {
    marked += text.starts_with("\xEF\xBB\xBF") ? 1 : 0;
    crlf += text.find("\r\n") != std::string_view::npos ? 1 : 0;
    const files::EncodingGuess wide = files::guess_wide_encoding(text);
    if (!wide.name.empty()) notes.push_back(file.path + files::conversion_hint(wide, file.path).replace(0, 1, ":"));
  });
  for (const std::string& path : repeated_files(corpus)) {
    notes.push_back(fmt::format("{} is read twice: it is one of the files before it", path));
  }
  if (marked > 0) {
    notes.push_back(fmt::format("{} with a byte order mark (U+FEFF), which is kept as part of the text",
                                text::counted(marked, "file begins", "files begin")));
  }
  if (crlf > 0) {
    notes.push_back(fmt::format("{} CRLF line ends, which are kept: the model learns to write \\r\\n",
                                text::counted(crlf, "file has", "files have")));
  }
  return notes;
}

}  // namespace handgrad
