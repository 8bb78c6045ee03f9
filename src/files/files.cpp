#include "handgrad/files/files.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>

#include "handgrad/core/errors.h"

namespace handgrad {
namespace {

[[noreturn]] void fail(std::string_view what, const std::string& path, int error) {
  throw DataError(fmt::format("cannot {} {}: {}", what, path, describe_errno(error)));
}

void check(int result, std::string_view what, const std::string& path) {
  if (result < 0) fail(what, path, -result);
}

// A signal may interrupt any call; it is then made again.
template <class Call>
auto retried(Call call) {
  auto result = call();
  while (result == -EINTR) result = call();
  return result;
}

// 0, or -errno. Writes may be short; a write of nothing would loop for ever and counts as an error.
int write_all(FileSystem* fs, int file, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const Index taken = retried([&] { return fs->write(file, bytes); });
    if (taken < 0) return static_cast<int>(taken);
    if (taken == 0) return -EIO;
    bytes = bytes.subspan(static_cast<std::size_t>(taken));
  }
  return 0;
}

// Where a new file is prepared: beside its final name, so that a rename suffices, and under a name of this process, so
// that two writers never meet.
std::string temporary_name(const std::string& path, int attempt) {
  return fmt::format("{}.{}-{}.tmp", path, ::getpid(), attempt);
}

// Is it <name>.<digits>-<digits>.tmp?
bool is_temporary(std::string_view name) {
  constexpr std::string_view suffix = ".tmp";
  if (!name.ends_with(suffix)) return false;
  name.remove_suffix(suffix.size());
  const auto digits_before = [&name](char separator) {
    const std::size_t at = name.find_last_not_of("0123456789");
    if (at == std::string_view::npos || at + 1 == name.size() || name[at] != separator) return false;
    name = name.substr(0, at);
    return true;
  };
  return digits_before('-') && digits_before('.') && !name.empty();
}

// Calls make(temporary name) until the name is new; gives the result of `make` and the name.
template <class Make>
int make_temporary(const std::string& path, std::string& temporary, Make make) {
  int result = -EEXIST;
  for (int attempt = 0; attempt < 1000 && result == -EEXIST; ++attempt) {
    temporary = temporary_name(path, attempt);
    result = retried([&] { return make(temporary); });
  }
  return result;
}

int write_and_sync(FileSystem* fs, int file, std::span<const std::byte> bytes) {
  int result = write_all(fs, file, bytes);
  if (result == 0) result = retried([&] { return fs->sync(file); });
  // On Linux an interrupted close has closed, and the data is synced: not made again, and no error.
  const int closed = fs->close(file);
  return result == 0 && closed != -EINTR ? closed : result;
}

void put_in_place(FileSystem* fs, const std::string& temporary, const std::string& path) {
  const int renamed = retried([&] { return fs->rename(temporary, path); });
  if (renamed < 0) {
    retried([&] { return fs->remove(temporary); });
    fail("write", path, -renamed);
  }
  check(retried([&] { return fs->sync_folder(folder_of(path)); }), "write", path);
}

}  // namespace

std::string describe_errno(int error) {
  const char* text = ::strerrordesc_np(error);
  std::string message = text != nullptr ? text : fmt::format("error {}", error);
  const bool acronym = message.size() > 1 && std::isupper(static_cast<unsigned char>(message[1]));
  if (!acronym) message[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(message[0])));
  return message;
}

std::string folder_of(const std::string& path) {
  const std::size_t slash = path.find_last_of('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

void write_durably(FileSystem* fs, const std::string& path, std::span<const std::byte> bytes) {
  std::string temporary;
  const int file = make_temporary(path, temporary,
                                  [&](const std::string& name) { return fs->open(name, FileSystem::Open::create); });
  check(file, "write", path);
  const int written = write_and_sync(fs, file, bytes);
  if (written < 0) {
    retried([&] { return fs->remove(temporary); });
    fail("write", path, -written);
  }
  put_in_place(fs, temporary, path);
}

void write_durably(FileSystem* fs, const std::string& path, std::string_view text) {
  write_durably(fs, path, std::as_bytes(std::span(text.data(), text.size())));
}

void replace_link(FileSystem* fs, const std::string& target_name, const std::string& link_path) {
  std::string temporary;
  const int made =
      make_temporary(link_path, temporary, [&](const std::string& name) { return fs->symlink(target_name, name); });
  check(made, "write link", link_path);
  put_in_place(fs, temporary, link_path);
}

void make_folders(FileSystem* fs, const std::string& path) {
  if (path.size() > 1 && path.ends_with('/')) return make_folders(fs, path.substr(0, path.size() - 1));
  const int made = retried([&] { return fs->make_folder(path); });
  if (made == -ENOENT && folder_of(path) != path) {
    make_folders(fs, folder_of(path));
    check(retried([&] { return fs->make_folder(path); }), "make folder", path);
  } else if (made == -EEXIST) {
    std::vector<std::string> names;
    check(retried([&] { return fs->list(path, names); }), "make folder", path);
    return;
  } else {
    check(made, "make folder", path);
  }
  check(retried([&] { return fs->sync_folder(folder_of(path)); }), "make folder", path);
}

std::vector<std::string> list_folder(FileSystem* fs, const std::string& folder) {
  std::vector<std::string> names;
  check(retried([&] { return fs->list(folder, names); }), "list", folder);
  return names;
}

void remove_file(FileSystem* fs, const std::string& path) {
  const int removed = retried([&] { return fs->remove(path); });
  if (removed != -ENOENT) check(removed, "remove", path);
}

void rename_file(FileSystem* fs, const std::string& from, const std::string& to) {
  check(retried([&] { return fs->rename(from, to); }), "rename", from);
  check(retried([&] { return fs->sync_folder(folder_of(to)); }), "rename", from);
}

void remove_temporaries(FileSystem* fs, const std::string& folder) {
  for (const std::string& name : list_folder(fs, folder)) {
    if (is_temporary(name)) remove_file(fs, folder + "/" + name);
  }
}

Appender::Appender(FileSystem* fs, std::string path) : fs_(fs), path_(std::move(path)) {
  file_ = retried([&] { return fs_->open(path_, FileSystem::Open::append); });
  check(file_, "open", path_);
  const Index size = retried([&] { return fs_->size(file_); });
  if (size < 0) {
    fs_->close(file_);
    fail("open", path_, static_cast<int>(-size));
  }
  size_bytes_ = size;
}

Appender::~Appender() { fs_->close(file_); }

void Appender::append(std::string_view line) {
  std::string row(line);
  row += '\n';
  const int written = write_all(fs_, file_, std::as_bytes(std::span(row)));
  if (written < 0) {
    retried([&] { return fs_->truncate(file_, size_bytes_); });
    fail("write", path_, -written);
  }
  size_bytes_ += static_cast<Index>(row.size());
}

void Appender::sync() {
  check(retried([&] { return fs_->sync(file_); }), "write", path_);
  if (folder_synced_) return;
  check(retried([&] { return fs_->sync_folder(folder_of(path_)); }), "write", path_);
  folder_synced_ = true;
}

void Appender::truncate(Index size_bytes) {
  if (size_bytes < 0 || size_bytes > size_bytes_) {
    throw RangeError(fmt::format("cannot cut {} to {} bytes: it has {}", path_, size_bytes, size_bytes_));
  }
  check(retried([&] { return fs_->truncate(file_, size_bytes); }), "cut", path_);
  size_bytes_ = size_bytes;
}

}  // namespace handgrad
