#include "handgrad/files/output_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

#include "handgrad/core/errors.h"
#include "handgrad/files/durable_write.h"
#include "support/message.h"
#include "support/temporary_folder.h"

namespace handgrad::files {
namespace {

namespace fs = std::filesystem;
using test::message_of;
using test::TemporaryFolder;

std::string content(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void put(const std::string& path, const std::string& text) { std::ofstream(path, std::ios::binary) << text; }

TEST(OutputFile, replaces_a_regular_file_and_keeps_its_permissions) {
  const TemporaryFolder folder;
  write_output(posix_files(), folder / "new", "one");
  EXPECT_EQ(content(folder / "new"), "one");
  ::chmod((folder / "new").c_str(), 0640);
  write_output(posix_files(), folder / "new", "two");
  EXPECT_EQ(content(folder / "new"), "two");
  struct stat info {};
  ASSERT_EQ(::stat((folder / "new").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0640u);
  EXPECT_EQ(list_folder(posix_files(), folder.path()), std::vector<std::string>{"new"});
}

TEST(OutputFile, writes_through_links) {
  const TemporaryFolder folder;
  fs::create_directory(folder / "far");
  put(folder / "far/target", "old");
  fs::create_symlink("far/second", folder / "first");  // relative to the folder of the link
  fs::create_symlink("target", folder / "far/second");
  EXPECT_EQ(link_target(folder / "first"), folder / "far/target");
  write_output(posix_files(), folder / "first", "new");
  EXPECT_EQ(content(folder / "far/target"), "new");
  EXPECT_TRUE(fs::is_symlink(folder / "first") && fs::is_symlink(folder / "far/second"));
  fs::create_symlink(folder / "made", folder / "dangling");
  write_output(posix_files(), folder / "dangling", "made");
  EXPECT_EQ(content(folder / "made"), "made");
  EXPECT_TRUE(fs::is_symlink(folder / "dangling"));
}

TEST(OutputFile, writes_to_a_pipe) {
  const TemporaryFolder folder;
  const std::string pipe = folder / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  fs::create_symlink("pipe", folder / "link");
  for (const std::string& name : {pipe, folder / "link"}) {
    std::string received;
    std::thread reader([&] { received = content(pipe); });
    write_output(posix_files(), name, "through the pipe");
    reader.join();
    EXPECT_EQ(received, "through the pipe");
    EXPECT_TRUE(fs::is_fifo(pipe));
  }
  EXPECT_TRUE(fs::is_symlink(folder / "link"));
}

// A terminal is a device that any user can create.
TEST(OutputFile, writes_to_a_device) {
  const int terminal = ::posix_openpt(O_RDWR | O_NOCTTY);
  if (terminal < 0 || ::grantpt(terminal) != 0 || ::unlockpt(terminal) != 0) GTEST_SKIP() << "no terminal can be made";
  const std::string device = ::ptsname(terminal);
  const int held = ::open(device.c_str(), O_RDWR | O_NOCTTY);  // keeps the written text readable
  write_output(posix_files(), device, "shown");
  char shown[16] = {};
  EXPECT_EQ(::read(terminal, shown, sizeof shown), 5);
  EXPECT_STREQ(shown, "shown");
  EXPECT_TRUE(fs::is_character_file(device));
  ::close(held), ::close(terminal);
}

TEST(OutputFile, writes_to_an_open_file_at_its_end) {
  const TemporaryFolder folder;
  put(folder / "log", "begun, ");
  const int file = ::open((folder / "log").c_str(), O_WRONLY);
  const fs::path same = folder / "log";
  const auto inode = [&] {
    struct stat info {};
    ::stat(same.c_str(), &info);
    return info.st_ino;
  };
  const auto before = inode();
  write_output(posix_files(), "/dev/fd/" + std::to_string(file), "continued");
  ::close(file);
  EXPECT_EQ(content(same), "begun, continued");
  EXPECT_EQ(inode(), before);
}

TEST(OutputFile, says_what_cannot_be_written) {
  const TemporaryFolder folder;
  EXPECT_EQ(message_of<DataError>([&] { write_output(posix_files(), folder.path(), "x"); }),
            "cannot write " + folder.path() + ": is a directory");
  EXPECT_EQ(message_of<DataError>([&] { write_output(posix_files(), folder / "none/x", "x"); }),
            "cannot write " + folder / "none/x" + ": no such file or directory");
  fs::create_symlink("loop", folder / "loop");
  EXPECT_EQ(message_of<DataError>([&] { write_output(posix_files(), folder / "loop", "x"); }),
            "cannot write " + folder / "loop" + ": too many levels of symbolic links");
}

}  // namespace
}  // namespace handgrad::files
