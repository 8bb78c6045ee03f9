#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "handgrad/core/types.h"

namespace handgrad {

/// A file that a corpus was read from, and how many bytes it gave.
struct CorpusFile {
  std::string path;
  Index size_bytes = 0;
};

/// What folders hold that is not read: counts of entries.
struct PassedOver {
  Index hidden = 0;       ///< Files and folders whose names begin with a dot.
  Index other_names = 0;  ///< Files with other endings than a text's, backups (name~) among them.
  Index same_file = 0;    ///< Links to a file that the folder holds under another name, too.
  Index links_to_folders = 0;
  Index runs = 0;         ///< Run folders of handgrad.
  Index not_regular = 0;  ///< Pipes, devices, links that lead nowhere.
  Index empty = 0;        ///< Text files without a byte.
};

/// Text of one or more files, joined in order with nothing between, byte for byte as in the files.
struct Corpus {
  std::string text;
  std::vector<CorpusFile> files;
  PassedOver passed_over;
};

/// Reads files, and folders: of a folder, all files below it that end in .txt, .md or .text (in any case), in the order
/// of their paths' bytes, whatever the locale. Names that begin with a dot are passed over, files and folders. Links to
/// files are followed, but no file of one folder is read twice; links to folders are not followed, and run folders not
/// entered. A path given twice is read twice.
///
/// Throws DataError, naming the path, if none is given, one is missing, cannot be read, or is neither file nor folder;
/// if a file that is named is empty, a folder holds no such file, or all of them are empty. Throws ResourceError for
/// more text than memory can hold.
Corpus read_corpus(std::span<const std::string> paths);

/// Bytes that read_corpus() would read, without reading them. Throws as it does.
Index corpus_size_bytes(std::span<const std::string> paths);

/// Throws DataError if a file of the corpus is not UTF-8 text, naming the file and the byte offset in it, and what the
/// bytes look like. A character does not continue from one file to the next.
void check_utf8(const Corpus& corpus);

/// "2 files, 1200 bytes; passed over: 3 hidden, 1 link to a folder".
std::string describe_files(const Corpus& corpus);

/// What a reader of the texts would want to know before training, a line each: files that are read a second time, begin
/// with a byte order mark, have CRLF line ends, or look like UTF-16.
std::vector<std::string> text_notes(const Corpus& corpus);

/// The files of `b` that are also files of `a`, under the same or another name.
std::vector<std::string> files_in_both(std::span<const CorpusFile> a, std::span<const CorpusFile> b);

}  // namespace handgrad
