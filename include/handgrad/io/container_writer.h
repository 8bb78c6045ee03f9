#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "handgrad/files/durable_write.h"
#include "handgrad/io/container.h"

namespace handgrad {

/// The bytes of a sealed container; the same contents always give the same bytes. Throws CheckpointError for invalid
/// contents (paths, sizes, duplicates), ResourceError if memory does not suffice.
std::vector<std::byte> seal_contents(const ContainerContents& contents);

/// Writes a sealed container, durably. Throws as seal_contents and files::write_durably.
void write_container(FileSystem* fs, const std::string& path, const ContainerContents& contents);

}  // namespace handgrad
