#include "handgrad/files/durable_write.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>

#include "files/system_calls.h"

namespace handgrad::files {
namespace {

// The temporary file is in the same folder, so that a rename can replace the final file, and its name contains the
// process id, so that two writers never share it.
std::string temporary_name(const std::string& path, int attempt) {
  return fmt::format("{}.{}-{}.tmp", path, ::getpid(), attempt);
}

// True for <name>.<digits>-<digits>.tmp.
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

// Calls make(temporary name) until the name is new. Returns the result of `make` and sets `temporary`.
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
  // On Linux an interrupted close has closed the file, and the data is synced already: no error, and no retry.
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

}  // namespace handgrad::files
