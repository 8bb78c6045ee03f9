#pragma once

#include <string>

#include "handgrad/files/durable_write.h"
#include "handgrad/io/container_reader.h"

namespace handgrad {

// Why there are two readers. A sealed container is read by its own index decoder (container_reader.h), which checks
// every bound, order and overlap: the XXH3 hash of the seal detects damage, but does not protect against an adversary,
// who can forge it. libhdf5 has crashed on damaged files, so it must never read a file without a user's explicit
// request. It is needed here only, for unsealed files of other programs.

/// Imports a plain HDF5 file, as other programs write it, through libhdf5. It accepts groups, contiguous or chunked
/// datasets of the known types, and attributes of groups. It throws CheckpointError for external storage, soft links,
/// virtual datasets, filters, datasets that were never written, and extents beyond the file. libhdf5 may crash on a
/// damaged file: call this only at a user's request.
Container read_plain_hdf5(const std::string& path);

/// Imports a plain HDF5 file and replaces it with a sealed container, durably. Returns false and changes nothing if it
/// is a sound container already. Throws as read_plain_hdf5 and files::write_durably, and CheckpointError for a damaged
/// container, since a new seal would hide the damage.
bool reseal(FileSystem* fs, const std::string& path);

}  // namespace handgrad
