#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "handgrad/core/types.h"

namespace handgrad {

/// A file of a corpus.
struct CorpusFile {
  std::string path;
  Index size_bytes = 0;
};

/// Numbers of entries in folders that were not read.
struct PassedOver {
  Index hidden = 0;       ///< Files and folders whose names begin with a dot.
  Index other_names = 0;  ///< Files without the ending of a text, including backups (name~).
  Index same_file = 0;    ///< Further names of a file that is read.
  Index links_to_folders = 0;
  Index runs = 0;         ///< Run folders of handgrad.
  Index not_regular = 0;  ///< Pipes, devices, broken links.
  Index empty = 0;        ///< Text files without a byte.
};

/// The text of one or more files: their bytes, joined in order without separators.
struct Corpus {
  std::string text;
  std::vector<CorpusFile> files;
  PassedOver passed_over;
};

/// Reads files and folders. Of a folder, it reads all files below it that end in .txt, .md or .text (upper or lower
/// case), in the byte order of their paths, in every locale. Files and folders whose names begin with a dot are passed
/// over. Links to files are followed, but each file of a folder is read once; links to folders and run folders are not
/// entered. A path given twice is read twice.
///
/// Throws DataError with the path if no path is given; if a path is missing, unreadable, or neither file nor folder; if
/// a given file is empty; if a folder contains no such file, or only empty ones. Throws ResourceError if the text does
/// not fit in memory.
Corpus read_corpus(std::span<const std::string> paths);

/// The number of bytes that read_corpus() would read. Throws as read_corpus() does.
Index corpus_size_bytes(std::span<const std::string> paths);

/// Throws DataError if a file of the corpus is not UTF-8 text, with the file, the byte offset in it, and the probable
/// encoding. A character must not continue from one file to the next.
void check_utf8(const Corpus& corpus);

/// "2 files, 1200 bytes; passed over: 3 hidden, 1 link to a folder".
std::string describe_files(const Corpus& corpus);

/// Notes to read before training, one line each: files that are read twice, begin with a byte order mark, have CRLF
/// line ends, or look like UTF-16.
std::vector<std::string> text_notes(const Corpus& corpus);

/// The files of `b` that are also in `a`, under the same or another name.
std::vector<std::string> files_in_both(std::span<const CorpusFile> a, std::span<const CorpusFile> b);

namespace text {

/// "1 file", "2 files". An empty `plural` is `singular` with an "s".
std::string counted(Index count, std::string_view singular, std::string_view plural = {});

}  // namespace text

}  // namespace handgrad
