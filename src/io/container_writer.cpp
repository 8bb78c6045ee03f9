#include "handgrad/io/container_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <new>
#include <tuple>

#include "handgrad/core/errors.h"
#include "handgrad/files/durable_write.h"
#include "handgrad/files/hash.h"
#include "io/hdf5.h"
#include "io/trailer.h"

namespace handgrad {

void io::require_shape_of(const std::string& path, const std::vector<Index>& shape, std::size_t count) {
  bool fits = true;
  std::uint64_t size = 1;
  for (const Index extent : shape) {
    fits = fits && extent >= 0 && !__builtin_mul_overflow(size, static_cast<std::uint64_t>(extent), &size);
  }
  if (!fits || size != count) {
    throw ShapeError(fmt::format("container: {}: the shape must match the {} values, got ({})", path, count,
                                 fmt::join(shape, ", ")));
  }
}

namespace {

// More than any memory, and small enough that sums cannot overflow.
constexpr std::uint64_t largest_total = std::uint64_t{1} << 48;

// libhdf5 writes the file into this vector, so that it need not be copied.
struct Image {
  std::vector<std::byte> bytes;
};

// Callbacks from C code: they must not throw.
void* image_resize(void*, size_t size, H5FD_file_image_op_t, void* user) {
  try {
    auto& bytes = static_cast<Image*>(user)->bytes;
    bytes.resize(size);
    return bytes.data();
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}
void* image_malloc(size_t size, H5FD_file_image_op_t operation, void* user) {
  return image_resize(nullptr, size, operation, user);
}
herr_t image_keep(void*, H5FD_file_image_op_t, void*) { return 0; }
void* user_share(void* user) { return user; }
herr_t user_keep(void*) { return 0; }

Hdf5Handle file_access(Image& image) {
  Hdf5Handle access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose, "prepare a file");
  constexpr size_t growth = 1 << 16;
  check_hdf5(H5Pset_fapl_core(access.get(), growth, /*backing_store=*/0), "prepare a file in memory");
  // Datasets start at multiples of 8, so that their elements can be read in place.
  check_hdf5(H5Pset_alignment(access.get(), 1, 8), "align datasets");
  H5FD_file_image_callbacks_t callbacks = {image_malloc, nullptr,   image_resize, image_keep,
                                           user_share,   user_keep, &image};
  check_hdf5(H5Pset_file_image_callbacks(access.get(), &callbacks), "keep a file in memory");
  return access;
}

// Missing groups of a path are created.
Hdf5Handle link_creation() {
  Hdf5Handle links(H5Pcreate(H5P_LINK_CREATE), H5Pclose, "prepare links");
  check_hdf5(H5Pset_create_intermediate_group(links.get(), 1), "prepare groups");
  return links;
}

Hdf5Handle dataset_creation() {
  Hdf5Handle creation(H5Pcreate(H5P_DATASET_CREATE), H5Pclose, "prepare a dataset");
  check_hdf5(H5Pset_layout(creation.get(), H5D_CONTIGUOUS), "prepare a dataset");
  check_hdf5(H5Pset_alloc_time(creation.get(), H5D_ALLOC_TIME_EARLY), "prepare a dataset");
  check_hdf5(H5Pset_fill_time(creation.get(), H5D_FILL_TIME_NEVER), "prepare a dataset");
  // No time stamps: the same contents give the same bytes.
  check_hdf5(H5Pset_obj_track_times(creation.get(), false), "prepare a dataset");
  return creation;
}

Hdf5Handle dataspace(const std::vector<Index>& shape) {
  const std::vector<hsize_t> extents(shape.begin(), shape.end());
  const hid_t space = shape.empty() ? H5Screate(H5S_SCALAR)
                                    : H5Screate_simple(static_cast<int>(extents.size()), extents.data(), nullptr);
  return {space, H5Sclose, "describe a shape"};
}

// Writes a dataset and sets the offset of its entry.
void write_dataset(hid_t file, const Hdf5Handle& links, const Hdf5Handle& creation, const DatasetSource& source,
                   DatasetEntry& entry) {
  const Hdf5Handle space = dataspace(source.shape);
  const Hdf5Handle dataset(H5Dcreate2(file, source.path.c_str(), hdf5_type(source.type), space.get(), links.get(),
                                      creation.get(), H5P_DEFAULT),
                           H5Dclose, fmt::format("make {}", source.path));
  if (entry.bytes == 0) return;
  check_hdf5(H5Dwrite(dataset.get(), hdf5_type(source.type), H5S_ALL, H5S_ALL, H5P_DEFAULT, source.data),
             fmt::format("write {}", source.path));
  const haddr_t offset = H5Dget_offset(dataset.get());
  if (offset == HADDR_UNDEF) throw MalformedContainer(fmt::format("HDF5 cannot place {}", source.path));
  entry.offset = offset;
}

Hdf5Handle attribute_type(const AttributeValue& value) {
  if (std::holds_alternative<std::int64_t>(value)) return {H5Tcopy(H5T_STD_I64LE), H5Tclose, "make a type"};
  if (std::holds_alternative<double>(value)) return {H5Tcopy(H5T_IEEE_F64LE), H5Tclose, "make a type"};
  Hdf5Handle text(H5Tcopy(H5T_C_S1), H5Tclose, "make a type");
  // HDF5 has no strings of size 0: an empty string is one NUL.
  check_hdf5(H5Tset_size(text.get(), std::max<std::size_t>(1, std::get<std::string>(value).size())), "make a type");
  check_hdf5(H5Tset_strpad(text.get(), H5T_STR_NULLPAD), "make a type");
  check_hdf5(H5Tset_cset(text.get(), H5T_CSET_UTF8), "make a type");
  return text;
}

// Opens a group; creates it and its parents if they are missing. H5Lexists accepts only one missing link at a time.
Hdf5Handle open_group(hid_t file, const std::string& path) {
  for (std::size_t end = 0; end < path.size() && path != "/";) {
    end = std::min(path.find('/', end + 1), path.size());
    const std::string part = path.substr(0, end);
    if (H5Lexists(file, part.c_str(), H5P_DEFAULT) > 0) continue;
    const Hdf5Handle made(H5Gcreate2(file, part.c_str(), H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT), H5Gclose,
                          "make a group");
  }
  return {H5Gopen2(file, path.c_str(), H5P_DEFAULT), H5Gclose, fmt::format("open group {}", path)};
}

void write_attribute(hid_t file, const Attribute& attribute) {
  const Hdf5Handle group = open_group(file, attribute.group);
  const Hdf5Handle type = attribute_type(attribute.value);
  const Hdf5Handle space(H5Screate(H5S_SCALAR), H5Sclose, "describe an attribute");
  const Hdf5Handle made(
      H5Acreate2(group.get(), attribute.name.c_str(), type.get(), space.get(), H5P_DEFAULT, H5P_DEFAULT), H5Aclose,
      fmt::format("make attribute {}", attribute.name));
  const void* data = std::visit(
      [](const auto& value) -> const void* {
        if constexpr (std::is_same_v<std::decay_t<decltype(value)>, std::string>) return value.c_str();
        return &value;
      },
      attribute.value);
  check_hdf5(H5Awrite(made.get(), type.get(), data), fmt::format("write attribute {}", attribute.name));
}

// Checks the contents and returns their index, without offsets and hashes.
ContainerIndex draft_index(const ContainerContents& contents) {
  ContainerIndex index;
  std::uint64_t total = 0;
  for (const DatasetSource& source : contents.datasets) {
    check_path(source.path);
    DatasetEntry entry;
    entry.path = source.path;
    entry.type = source.type;
    entry.shape = source.shape;
    entry.bytes = checked_bytes(source.type, source.shape);
    if (io::element_bytes(source.type) == 0) throw MalformedContainer(fmt::format("{} has no type", source.path));
    if (entry.bytes > 0 && source.data == nullptr) throw MalformedContainer(fmt::format("{} has no data", source.path));
    total += entry.bytes;
    if (total > largest_total) throw MalformedContainer("its datasets are too large");
    index.datasets.push_back(std::move(entry));
  }
  index.attributes = contents.attributes;
  for (const Attribute& attribute : contents.attributes) check_attribute(attribute);
  if (index.datasets.size() > io::most_datasets || index.attributes.size() > io::most_attributes) {
    throw MalformedContainer("it has too many datasets or attributes");
  }
  check_paths(index.datasets);
  return index;
}

// The number of groups of a path that the preceding path, in order, does not contain.
std::size_t new_groups(std::string_view before, std::string_view path) {
  const auto differ = std::mismatch(before.begin(), before.end(), path.begin(), path.end()).second;
  return std::count(differ, path.end(), '/');
}

// An upper estimate of the size of image and trailer, allocated before libhdf5 runs.
std::uint64_t expected_bytes(const ContainerIndex& index) {
  constexpr std::uint64_t per_dataset = 1024, per_group = 2048, per_file = 1 << 17;
  std::uint64_t bytes = trailer_bytes(index) + per_file;
  std::string_view before;
  for (const DatasetEntry& entry : index.datasets) {
    bytes += entry.bytes + per_dataset + per_group * new_groups(before, entry.path) + 2 * entry.path.size();
    before = entry.path;
  }
  for (const Attribute& attribute : index.attributes) {
    const auto* text = std::get_if<std::string>(&attribute.value);
    bytes += per_dataset + 2 * (attribute.name.size() + (text ? text->size() : 0));
  }
  return bytes;
}

void write_image(Image& image, const ContainerContents& contents, ContainerIndex& index) {
  const Hdf5Handle access = file_access(image);
  Hdf5Handle file(H5Fcreate("in memory", H5F_ACC_TRUNC, H5P_DEFAULT, access.get()), H5Fclose, "make a file in memory");
  const Hdf5Handle links = link_creation();
  const Hdf5Handle creation = dataset_creation();
  for (std::size_t i = 0; i < contents.datasets.size(); ++i) {
    write_dataset(file.get(), links, creation, contents.datasets[i], index.datasets[i]);
  }
  for (const Attribute& attribute : contents.attributes) write_attribute(file.get(), attribute);
  if (!file.close()) throw MalformedContainer("HDF5 cannot finish the file");
}

// Sorts the contents, so that the bytes do not depend on the order in which they were added.
ContainerContents in_order(ContainerContents contents) {
  std::sort(contents.datasets.begin(), contents.datasets.end(),
            [](const auto& a, const auto& b) { return a.path < b.path; });
  std::sort(contents.attributes.begin(), contents.attributes.end(),
            [](const auto& a, const auto& b) { return std::tie(a.group, a.name) < std::tie(b.group, b.name); });
  return contents;
}

std::vector<std::byte> sealed(const ContainerContents& unordered) {
  const ContainerContents contents = in_order(unordered);
  ContainerIndex index = draft_index(contents);
  auto image = std::make_unique<Image>();
  image->bytes.reserve(expected_bytes(index));
  try {
    const Hdf5Session session;
    write_image(*image, contents, index);
  } catch (...) {
    // If libhdf5 fails to close a file, it may close it at the end of the process, so the memory must not be freed.
    static_cast<void>(image.release());
    throw;
  }
  std::vector<std::byte> bytes = std::move(image->bytes);
  // libhdf5 allocates in steps; the superblock states the end of the file.
  const auto end = hdf5_end(bytes);
  if (!end || *end > bytes.size()) throw MalformedContainer("HDF5 did not finish the file");
  bytes.resize(*end);
  for (DatasetEntry& entry : index.datasets) {
    entry.hash = files::hash64(std::span<const std::byte>(bytes).subspan(entry.offset, entry.bytes));
  }
  append_trailer(bytes, index);
  return bytes;
}

}  // namespace

std::vector<std::byte> seal_contents(const ContainerContents& contents) {
  try {
    return sealed(contents);
  } catch (const MalformedContainer& reason) {
    throw CheckpointError(fmt::format("cannot make a checkpoint: {}", reason.what()));
  } catch (const std::bad_alloc&) {
    std::uint64_t bytes = 0;
    for (const DatasetSource& source : contents.datasets) bytes += checked_bytes(source.type, source.shape);
    throw ResourceError(fmt::format("cannot make a checkpoint: its {} bytes could not be allocated", bytes), bytes);
  }
}

void write_container(FileSystem* fs, const std::string& path, const ContainerContents& contents) {
  files::write_durably(fs, path, seal_contents(contents));
}

}  // namespace handgrad
