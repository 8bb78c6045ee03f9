#include "handgrad/text/corpus.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "handgrad/core/errors.h"
#include "handgrad/files/utf8.h"
#include "handgrad/text/tokenizer.h"
#include "handgrad/text/windows.h"

namespace handgrad {
namespace {

namespace fs = std::filesystem;
using namespace std::string_literals;

class CorpusTest : public testing::Test {
 protected:
  void SetUp() override {
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    folder_ = fs::temp_directory_path() / ("handgrad_corpus_" + std::to_string(::getpid()) + "_" + test->name());
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  std::string write(const std::string& name, const std::string& bytes) const {
    fs::create_directories((folder_ / name).parent_path());
    std::ofstream(folder_ / name, std::ios::binary) << bytes;
    return path(name);
  }

  static Corpus read(const std::vector<std::string>& paths) { return read_corpus(paths); }

  static std::string error_of(const std::vector<std::string>& paths) {
    try {
      read(paths);
    } catch (const DataError& error) {
      return error.what();
    }
    return "no error";
  }

  fs::path folder_;
};

TEST_F(CorpusTest, reads_bytes_exactly) {
  const std::string bytes =
      "\xEF\xBB\xBF"
      "a\r\n\0\xFF\x1A b"s;  // no line end at the end of the file
  const Corpus corpus = read({write("a.bin", bytes)});
  EXPECT_EQ(corpus.text, bytes);
  ASSERT_EQ(corpus.files.size(), 1u);
  EXPECT_EQ(corpus.files[0].path, path("a.bin"));
  EXPECT_EQ(corpus.files[0].size_bytes, static_cast<Index>(bytes.size()));
}

TEST_F(CorpusTest, reads_characters_across_block_boundaries) {
  for (const std::size_t n : {4095u, 65535u, 1048575u}) {
    const std::string text = std::string(n, 'a') + "\xC3\xA9";
    const Corpus corpus = read({write("long.txt", text)});
    EXPECT_EQ(corpus.text, text);
    EXPECT_NO_THROW(check_utf8(corpus));
  }
}

TEST_F(CorpusTest, joins_files_in_the_given_order) {
  const std::string b = write("b.txt", "second"), a = write("a.txt", "first");
  EXPECT_EQ(read({b, a, b}).text, "secondfirstsecond");
}

TEST_F(CorpusTest, reads_folders_sorted_by_path) {
  write("z.txt", "5");
  write("a/2.md", "2");
  write("a/10.txt", "1");
  write("a/b/c/deep.TEXT", "3");
  write("m.text", "4");
  write("a/skipped.bin", "x");
  write("notes", "x");
  write("empty.txt", "");
  fs::create_directories(folder_ / "folder.txt");
  EXPECT_EQ(read({folder_.string()}).text, "12345");
  EXPECT_EQ(read({path("z.txt"), path("a")}).text, "5123");
}

TEST_F(CorpusTest, follows_links_to_files_but_not_to_folders) {
  write("texts/a.txt", "a");
  write("elsewhere/b.txt", "b");
  fs::create_symlink(folder_ / "elsewhere" / "b.txt", folder_ / "texts" / "link.txt");
  fs::create_directory_symlink(folder_ / "texts", folder_ / "texts" / "loop");
  fs::create_symlink(folder_ / "nowhere", folder_ / "texts" / "dangling.txt");
  EXPECT_EQ(read({path("texts")}).text, "ab");
}

// Files that editors, tools and file managers leave in a folder, and further names of the folder's own files.
TEST_F(CorpusTest, reads_the_texts_of_a_folder_once_and_nothing_else) {
  write("texts/a.txt", "first");
  write("texts/b.md", "second");
  write("texts/.ipynb_checkpoints/a-checkpoint.txt", "copy");
  write("texts/._a.txt", "\x00\x05\x16\x07"s);
  write("texts/.git/description.txt", "git");
  write("texts/b.md~", "backup");
  write("texts/picture.png", "x");
  write("texts/c.txt", "");
  write("texts/runs/x/config.toml", "");
  write("texts/runs/x/checkpoints/note.txt", "run");
  write("texts/runs/x/sample.txt", "run");
  fs::create_symlink("a.txt", folder_ / "texts/0-link.txt");
  fs::create_hard_link(folder_ / "texts/b.md", folder_ / "texts/d.md");
  fs::create_directory_symlink(".", folder_ / "texts/sub");
  ASSERT_EQ(::mkfifo(path("texts/x.txt").c_str(), 0600), 0);
  const Corpus corpus = read({path("texts")});
  EXPECT_EQ(corpus.text, "firstsecond");
  const PassedOver& p = corpus.passed_over;
  EXPECT_EQ(p.hidden, 3);
  EXPECT_EQ(p.other_names, 2);
  EXPECT_EQ(p.same_file, 2);
  EXPECT_EQ(p.links_to_folders, 1);
  EXPECT_EQ(p.runs, 1);
  EXPECT_EQ(p.not_regular, 1);
  EXPECT_EQ(p.empty, 1);
  EXPECT_EQ(describe_files(corpus),
            "3 files, 11 bytes; passed over: 3 hidden names, 2 files with other endings, 2 links to files that are "
            "read, 1 link to a folder, 1 run folder, 1 pipe, device or broken link; 1 of the files is empty");
  EXPECT_EQ(describe_files(read({path("texts/a.txt"), path("texts/b.md")})), "2 files, 11 bytes");
  // A file that is named explicitly is read whatever its name is.
  EXPECT_EQ(read({path("texts/.git")}).text, "git");
  EXPECT_EQ(read({path("texts/b.md~")}).text, "backup");
}

// The name does not depend on the order in which the folder lists its entries.
TEST_F(CorpusTest, a_file_of_several_names_is_read_under_the_first) {
  for (const bool last_first : {false, true}) {
    const std::string folder = last_first ? "x" : "y";
    std::vector<std::string> names;
    for (int i = 0; i < 20; ++i) names.push_back(folder + "/" + std::string(1, static_cast<char>('b' + i)) + ".txt");
    if (last_first) std::reverse(names.begin(), names.end());
    write(names[0], "first");
    for (std::size_t i = 1; i < names.size(); ++i) fs::create_hard_link(folder_ / names[0], folder_ / names[i]);
    write(folder + "/a.txt", "begin ");
    write(folder + "/c2.txt", " end");
    const Corpus corpus = read({path(folder)});
    EXPECT_EQ(corpus.text, "begin first end");
    const std::string paths[] = {path(folder), path(folder + "/a.txt")};
    EXPECT_EQ(corpus_size_bytes(paths), 21);
    EXPECT_EQ(corpus.files[1].path, path(folder + "/b.txt"));
  }
}

TEST_F(CorpusTest, notes_what_is_unusual) {
  EXPECT_EQ(text_notes(read({write("plain.txt", "a\nb\n")})), std::vector<std::string>{});
  const std::string marked = write("marked.txt",
                                   "\xEF\xBB\xBF"
                                   "a\r\n"),
                    crlf = write("crlf.txt", "a\r\nb\r\n");
  const std::string wide = write("wide.txt", "w\0i\0d\0e\0 \0t\0e\0x\0t\0\n\0"s);
  EXPECT_EQ(
      text_notes(read({marked, crlf, wide})),
      (std::vector<std::string>{
          wide + ": it looks like UTF-16LE (10 of its 20 bytes are NUL): iconv -f UTF-16LE -t UTF-8 " + wide + " > NEW",
          "1 file begins with a byte order mark (U+FEFF), which is kept as part of the text",
          "2 files have CRLF line ends, which are kept: the model learns to write \\r\\n"}));
}

TEST_F(CorpusTest, notes_what_is_read_twice) {
  const std::string a = write("a.txt", "a"), b = write("b.txt", "b");
  fs::create_symlink("a.txt", folder_ / "link.txt");
  const Corpus corpus = read({a, b, path("link.txt"), b});
  EXPECT_EQ(text_notes(corpus),
            (std::vector<std::string>{path("link.txt") + " is read twice: it is one of the files before it",
                                      b + " is read twice: it is one of the files before it"}));
  EXPECT_EQ(files_in_both(read({a}).files, read({b, path("link.txt")}).files),
            std::vector<std::string>{path("link.txt")});
}

TEST_F(CorpusTest, says_that_names_are_taken_as_they_are) {
  const std::string expanded =
      "; ~, *, ? and $ are part of the name and not expanded: name the file, or a folder of .txt and .md files";
  for (const char* name : {"~/t.txt", "$HOME/t.txt", "*.txt"}) {
    EXPECT_EQ(error_of({path(name)}), "no such file or folder: " + path(name) + expanded);
  }
  EXPECT_EQ(error_of({path("C:\\data\\my.txt")}),
            "no such file or folder: " + path("C:\\data\\my.txt") +
                "; a backslash is part of the name: folders are separated by slashes");
}

TEST_F(CorpusTest, says_what_cannot_be_read) {
  EXPECT_EQ(error_of({}), "no text files given");
  EXPECT_EQ(error_of({path("missing.txt")}), "no such file or folder: " + path("missing.txt"));
  EXPECT_EQ(error_of({write("empty.txt", "")}), "empty file: " + path("empty.txt"));
  EXPECT_EQ(error_of({"/dev/null"}), "not a regular file or folder: /dev/null");
  ASSERT_EQ(::mkfifo(path("pipe.txt").c_str(), 0600), 0);
  EXPECT_EQ(error_of({path("pipe.txt")}), "not a regular file or folder: " + path("pipe.txt"));
  write("bare/picture.png", "x");
  EXPECT_EQ(error_of({path("bare")}),
            "no text in folder " + path("bare") + ": no file below it ends in .txt, .md or .text");
  write("hollow/a.txt", "");
  EXPECT_EQ(error_of({path("hollow")}), "no text in folder " + path("hollow") + ": all 1 text files are empty");
  EXPECT_EQ(error_of({write("good.txt", "good") + "/below"}), "no such file or folder: " + path("good.txt") + "/below");
}

TEST_F(CorpusTest, says_what_may_not_be_read) {
  if (::geteuid() == 0) GTEST_SKIP() << "root may read everything; BadInput.permissions runs as an ordinary user";
  fs::permissions(write("locked.txt", "x"), fs::perms::none);
  EXPECT_EQ(error_of({path("locked.txt")}), "cannot read " + path("locked.txt") + ": permission denied");
  write("texts/below/a.txt", "x");
  fs::permissions(path("texts/below"), fs::perms::none);
  EXPECT_NE(error_of({path("texts")}).find("permission denied"), std::string::npos);
  fs::permissions(path("texts/below"), fs::perms::owner_all);
}

TEST_F(CorpusTest, invalid_utf8_names_file_and_offset) {
  const Corpus corpus = read({write("good.txt", "caf\xC3\xA9"), write("bad.txt",
                                                                      "ab\xFF"
                                                                      "c")});
  try {
    check_utf8(corpus);
    FAIL();
  } catch (const DataError& error) {
    EXPECT_EQ(error.what(), path("bad.txt") + ": invalid UTF-8 at byte offset 2: byte 0xFF cannot begin a character");
  }
  EXPECT_THROW(check_utf8(read({write("head.txt", "\xC3"), write("tail.txt", "\xA9")})), DataError);
}

// The stories in data/: either tokenizer can encode them, and they are long enough to split.
TEST_F(CorpusTest, stories_are_read_encoded_and_split) {
  const Corpus corpus = read({std::string(HANDGRAD_SOURCE_DIR) + "/data/stories.txt"});
  EXPECT_NO_THROW(check_utf8(corpus));
  const auto tokenizer = make_char_tokenizer(corpus.text);
  EXPECT_LT(tokenizer->vocab_size(), 64);
  EXPECT_LT(tokenizer->code_points().back(), 128u);
  const auto tokens = tokenizer->encode(corpus.text);
  EXPECT_EQ(tokenizer->decode(tokens), corpus.text);
  const TokenSplit split = split_by_fraction(tokens, 0.1, 256);
  EXPECT_GT(split.train.size(), 900000u);
  EXPECT_GT(split.validation.size(), 100000u);
}

}  // namespace
}  // namespace handgrad
