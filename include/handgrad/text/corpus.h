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

/// Text of one or more files, joined in order with nothing between, byte for byte as in the files.
struct Corpus {
  std::string text;
  std::vector<CorpusFile> files;
};

/// Reads files, and folders: of a folder, all files below it that end in .txt, .md or .text (in any case), in the order
/// of their paths' bytes; links to files are followed, links to folders are not. A path given twice is read twice.
///
/// Throws DataError, naming the path, if none is given, one is missing, cannot be read, or is neither file nor folder;
/// if a file that is named is empty, a folder holds no such file, or all of them are empty. Throws ResourceError for
/// more text than memory can hold.
Corpus read_corpus(std::span<const std::string> paths);

/// Throws DataError if a file of the corpus is not valid UTF-8, naming the file and the byte offset in it. A character
/// does not continue from one file to the next.
void check_utf8(const Corpus& corpus);

}  // namespace handgrad
