#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>

#include "handgrad/core/errors.h"
#include "handgrad/files/appender.h"
#include "handgrad/files/durable_write.h"
#include "handgrad/files/read_file.h"
#include "handgrad/files/run_lock.h"
#include "support/failing_files.h"
#include "support/message.h"
#include "support/temporary_folder.h"

namespace handgrad::files {
namespace {

using test::FailingFiles;
using test::message_of;
using test::TemporaryFolder;
using Names = std::vector<std::string>;

TEST(files, write_durably_makes_and_replaces) {
  const TemporaryFolder folder;
  const std::string path = folder / "a.txt";
  write_durably(posix_files(), path, std::string_view("one"));
  write_durably(posix_files(), path, std::string_view("three"));
  EXPECT_EQ(read_file(path), "three");
  write_durably(posix_files(), path, std::string_view());
  EXPECT_EQ(read_file(path), "");
  EXPECT_EQ(list_folder(posix_files(), folder.path()), Names{"a.txt"});
}

TEST(files, order_of_a_durable_write) {
  const TemporaryFolder folder;
  FailingFiles files;
  write_durably(&files, folder / "a", std::string_view("text"));
  EXPECT_EQ(files.calls, (Names{"open", "write", "sync", "close", "rename", "sync_folder"}));
  files.calls.clear();
  replace_link(&files, "a", folder / "latest");
  EXPECT_EQ(files.calls, (Names{"symlink", "rename", "sync_folder"}));
}

TEST(files, short_and_interrupted_calls_are_taken_up_again) {
  const TemporaryFolder folder;
  std::string text;
  for (int i = 0; i < 1000; ++i) text += std::to_string(i);
  FailingFiles files(
      [](int number, const std::string& name) { return number % 2 == 0 && name != "close" ? -EINTR : 0; });
  files.longest_write = 7;
  write_durably(&files, folder / "a", text);
  EXPECT_EQ(read_file(folder / "a"), text);
  replace_link(&files, "a", folder / "latest");
  EXPECT_EQ(read_file(folder / "latest"), text);
}

TEST(files, an_interrupted_close_is_no_error) {
  const TemporaryFolder folder;
  FailingFiles files([](int, const std::string& name) { return name == "close" ? -EINTR : 0; });
  write_durably(&files, folder / "a", std::string_view("text"));
  EXPECT_EQ(read_file(folder / "a"), "text");
}

// Every call of a write fails in turn, once or from then on. Expected: one clear error, the old file unchanged, no
// temporary file.
TEST(files, a_failing_call_leaves_the_old_file_and_nothing_else) {
  const TemporaryFolder folder;
  const std::string path = folder / "a";
  for (const std::string failing : {"open", "write", "sync", "close", "rename"}) {
    for (const int error : {EIO, ENOSPC, EDQUOT}) {
      write_durably(posix_files(), path, std::string_view("old"));
      FailingFiles files([&](int, const std::string& name) { return name == failing ? -error : 0; });
      const auto message = message_of<DataError>([&] { write_durably(&files, path, std::string_view("new")); });
      EXPECT_EQ(message, "cannot write " + path + ": " + describe_errno(error)) << failing;
      EXPECT_EQ(read_file(path), "old") << failing;
      EXPECT_EQ(list_folder(posix_files(), folder.path()), Names{"a"}) << failing;
    }
  }
  FailingFiles files([&](int, const std::string& name) { return name == "sync_folder" ? -EIO : 0; });
  EXPECT_THROW(write_durably(&files, path, std::string_view("new")), DataError);
  EXPECT_EQ(list_folder(posix_files(), folder.path()), Names{"a"});
}

TEST(files, a_write_that_takes_nothing_is_an_error) {
  const TemporaryFolder folder;
  FailingFiles files;
  files.longest_write = 0;
  EXPECT_THROW(write_durably(&files, folder / "a", std::string_view("new")), DataError);
  EXPECT_TRUE(list_folder(posix_files(), folder.path()).empty());
}

TEST(files, a_full_disk_is_named) {
  EXPECT_EQ(describe_errno(ENOSPC), "no space left on device");
  EXPECT_EQ(describe_errno(EIO), "input/output error");
  const auto message =
      message_of<DataError>([] { write_durably(posix_files(), "/nowhere/at/all", std::string_view("text")); });
  EXPECT_EQ(message, "cannot write /nowhere/at/all: no such file or directory");
}

TEST(files, a_limit_on_file_size_is_an_error) {
  const TemporaryFolder folder;
  write_durably(posix_files(), folder / "a", std::string_view("old"));
  const pid_t child = ::fork();
  if (child == 0) {
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{1000, 1000};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    try {
      write_durably(posix_files(), folder / "a", std::string(5000, 'x'));
    } catch (const DataError&) {
      ::_exit(7);
    }
    ::_exit(1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 7);
  EXPECT_EQ(read_file(folder / "a"), "old");
  EXPECT_EQ(list_folder(posix_files(), folder.path()), Names{"a"});
}

TEST(files, temporaries_of_the_dead_are_stepped_over_and_removed) {
  const TemporaryFolder folder;
  const std::string stale = "a." + std::to_string(::getpid()) + "-0.tmp";
  std::ofstream(folder / stale) << "half";
  std::ofstream(folder / "notes.tmp") << "mine";
  std::ofstream(folder / ".1-2.tmp") << "mine";
  write_durably(posix_files(), folder / "a", std::string_view("whole"));
  EXPECT_EQ(read_file(folder / "a"), "whole");
  remove_temporaries(posix_files(), folder.path());
  EXPECT_EQ(list_folder(posix_files(), folder.path()), (Names{".1-2.tmp", "a", "notes.tmp"}));
}

TEST(files, links_are_relative_and_replaced) {
  const TemporaryFolder folder;
  write_durably(posix_files(), folder / "a", std::string_view("a"));
  write_durably(posix_files(), folder / "b", std::string_view("b"));
  replace_link(posix_files(), "a", folder / "latest");
  replace_link(posix_files(), "b", folder / "latest");
  EXPECT_EQ(read_file(folder / "latest"), "b");
  EXPECT_EQ(std::filesystem::read_symlink(folder / "latest"), "b");
  FailingFiles files([](int, const std::string& name) { return name == "rename" ? -EIO : 0; });
  EXPECT_EQ(message_of<DataError>([&] { replace_link(&files, "a", folder / "latest"); }),
            "cannot write " + folder / "latest" + ": input/output error");
  EXPECT_EQ(list_folder(posix_files(), folder.path()), (Names{"a", "b", "latest"}));
}

TEST(files, folders) {
  const TemporaryFolder folder;
  make_folders(posix_files(), folder / "x/y/z/");
  make_folders(posix_files(), folder / "x/y/z");
  EXPECT_TRUE(std::filesystem::is_directory(folder / "x/y/z"));
  write_durably(posix_files(), folder / "file", std::string_view());
  EXPECT_EQ(message_of<DataError>([&] { make_folders(posix_files(), folder / "file"); }),
            "cannot make folder " + folder / "file" + ": not a directory");
  remove_file(posix_files(), folder / "file");
  remove_file(posix_files(), folder / "file");
  EXPECT_EQ(folder_of("a"), ".");
  EXPECT_EQ(folder_of("/a"), "/");
  EXPECT_EQ(folder_of("b/a"), "b");
}

TEST(files, appender_goes_on_where_the_file_ends) {
  const TemporaryFolder folder;
  const std::string path = folder / "metrics.jsonl";
  {
    Appender log(posix_files(), path);
    log.append("{\"step\":1}");
    log.append("{\"step\":2}");
    log.sync();
  }
  Appender log(posix_files(), path);
  EXPECT_EQ(log.size_bytes(), 22);
  log.append("{\"step\":3}");
  EXPECT_EQ(read_file(path), "{\"step\":1}\n{\"step\":2}\n{\"step\":3}\n");
  log.truncate(11);
  log.append("{\"step\":2}");
  EXPECT_EQ(read_file(path), "{\"step\":1}\n{\"step\":2}\n");
  EXPECT_THROW(log.truncate(1000), RangeError);
}

TEST(files, appender_takes_back_half_a_line) {
  const TemporaryFolder folder;
  int writes = 0;
  FailingFiles files([&](int, const std::string& name) { return name == "write" && ++writes == 3 ? -ENOSPC : 0; });
  Appender log(&files, folder / "log");
  log.append("one");
  files.longest_write = 2;
  EXPECT_THROW(log.append("second"), DataError);
  files.longest_write = 100;
  log.append("three");
  log.sync();
  EXPECT_EQ(read_file(folder / "log"), "one\nthree\n");
}

// A host program may have closed its standard streams and still print.
TEST(files, no_file_gets_the_number_of_a_standard_stream) {
  const test::TemporaryFolder folder;
  const std::string log = folder / "log";
  const pid_t child = ::fork();
  if (child == 0) {
    for (const int stream : {0, 1, 2}) ::close(stream);
    const RunLock lock(folder.path());
    Appender rows(posix_files(), log);
    rows.append("row");
    for (const int stream : {0, 1, 2}) {
      if (::write(stream, "printed", 7) != -1) ::_exit(1);
    }
    rows.append("row");
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(read_file(log), "row\nrow\n");
  EXPECT_EQ(read_file(folder / "lock"), "");
}

TEST(files, read_says_why_not) {
  const TemporaryFolder folder;
  EXPECT_EQ(message_of<DataError>([&] { read_file(folder / "absent"); }),
            "cannot read " + folder / "absent" + ": no such file or directory");
  EXPECT_EQ(message_of<DataError>([&] { read_file(folder.path()); }),
            "cannot read " + folder.path() + ": is a directory");
  write_durably(posix_files(), folder / "a", std::string(100, 'x'));
  EXPECT_EQ(message_of<DataError>([&] { read_file(folder / "a", 99); }),
            "cannot read " + folder / "a" + ": at most 99 bytes are expected, it has 100 or more");
  EXPECT_EQ(read_bytes(folder / "a", 100).size(), 100u);
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  EXPECT_EQ(message_of<DataError>([&] { read_bytes(folder / "pipe"); }),
            "cannot read " + folder / "pipe" + ": is not a regular file");
  EXPECT_EQ(message_of<DataError>([&] { read_file("/dev/zero", 1 << 20); }).find("cannot read /dev/zero: "), 0u);
  if (::geteuid() != 0) {
    ::chmod((folder / "a").c_str(), 0);
    EXPECT_EQ(message_of<DataError>([&] { read_file(folder / "a"); }),
              "cannot read " + folder / "a" + ": permission denied");
  }
}

TEST(files, one_writer_a_run_folder) {
  const TemporaryFolder folder;
  {
    const RunLock lock(folder.path());
    EXPECT_EQ(message_of<DataError>([&] { RunLock second(folder.path()); }),
              "cannot lock " + folder.path() + ": another process is writing to this run");
  }
  const pid_t child = ::fork();
  if (child == 0) {
    const RunLock lock(folder.path());
    ::raise(SIGKILL);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  const RunLock again(folder.path());
  EXPECT_THROW(RunLock("/nowhere"), DataError);
}

}  // namespace
}  // namespace handgrad::files
