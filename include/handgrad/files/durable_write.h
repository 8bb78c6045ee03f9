#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "handgrad/files/file_system.h"

namespace handgrad::files {

// Every function here throws DataError (operation, path, reason) if the system reports a failure.

/// Creates or replaces `path` with these bytes, atomically: it writes a temporary file in the same folder, syncs it,
/// renames it and syncs the folder. On return the file is durable. On an error the temporary file is removed and the
/// old file is unchanged; if only the sync of the folder failed, the file has been replaced.
void write_durably(FileSystem* fs, const std::string& path, std::span<const std::byte> bytes);
void write_durably(FileSystem* fs, const std::string& path, std::string_view text);

/// Makes `link_path` a symbolic link to `target_name` (relative to the link's folder). An older link is replaced
/// atomically and durably.
void replace_link(FileSystem* fs, const std::string& target_name, const std::string& link_path);

/// Makes a folder and its parents, durably. Succeeds if the folder already exists.
void make_folders(FileSystem* fs, const std::string& path);

/// Names in a folder, sorted.
std::vector<std::string> list_folder(FileSystem* fs, const std::string& folder);

/// Removes a file or a link. Succeeds if it does not exist.
void remove_file(FileSystem* fs, const std::string& path);

/// Renames a file within a file system, durably. Replaces a file that has the new name.
void rename_file(FileSystem* fs, const std::string& from, const std::string& to);

/// Removes the temporary files that a killed process left in a folder. Only the folder's one writer may call it.
void remove_temporaries(FileSystem* fs, const std::string& folder);

}  // namespace handgrad::files
