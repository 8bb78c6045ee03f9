#pragma once

#include <string>

#include "handgrad/files/durable_write.h"
#include "handgrad/io/container_reader.h"

namespace handgrad {

/// Reads a plain HDF5 file, such as another program writes, through libhdf5. Only groups, contiguous or chunked
/// datasets of our types and attributes of groups are taken; external storage, links other than hard ones, virtual
/// datasets, filters, datasets never written and extents beyond the file are refused with a CheckpointError. libhdf5
/// may crash on a damaged file: nothing may be read this way unless a person asks for it.
Container read_plain_hdf5(const std::string& path);

/// Seals a plain HDF5 file in place, durably. False, and nothing done, if it is a sound container already. Throws as
/// read_plain_hdf5 and write_durably; a container that is damaged is refused, since sealing it would hide that.
bool reseal(FileSystem* fs, const std::string& path);

}  // namespace handgrad
