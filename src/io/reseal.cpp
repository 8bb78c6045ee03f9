#include "handgrad/io/reseal.h"

#include <fmt/format.h>

#include <filesystem>
#include <new>

#include "handgrad/core/errors.h"
#include "handgrad/files/durable_write.h"
#include "handgrad/files/read_file.h"
#include "handgrad/io/container_writer.h"
#include "io/hdf5.h"
#include "io/trailer.h"

namespace handgrad {
namespace {

constexpr int deepest = 64;
constexpr ElementType types[] = {ElementType::float32, ElementType::float64, ElementType::int64, ElementType::uint32,
                                 ElementType::uint8};

struct OwnedDataset {
  std::string path;
  ElementType type;
  std::vector<Index> shape;
  std::vector<std::byte> bytes;
};

[[noreturn]] void refuse(const std::string& path, std::string_view why) {
  throw MalformedContainer(fmt::format("{} {}", path, why));
}

// Reads an HDF5 file, and refuses everything that a container cannot contain.
class PlainReader {
 public:
  explicit PlainReader(std::uint64_t file_bytes) : budget_(file_bytes) {}

  void read_group(hid_t group, const std::string& path, int depth) {
    if (depth > deepest) refuse(path, "is nested too deeply");
    read_attributes(group, path);
    H5G_info_t info;
    check_hdf5(H5Gget_info(group, &info), "read a group");
    for (hsize_t i = 0; i < info.nlinks; ++i) {
      const std::string name = link_name(group, i, path);
      const std::string full = path == "/" ? path + name : fmt::format("{}/{}", path, name);
      check_path(full);
      const Hdf5Handle object(H5Oopen(group, name.c_str(), H5P_DEFAULT), H5Oclose, fmt::format("open {}", full));
      H5O_info_t about;
      check_hdf5(H5Oget_info(object.get(), &about), "inspect an object");
      if (about.rc != 1) refuse(full, "is linked more than once");
      if (about.type == H5O_TYPE_GROUP) {
        read_group(object.get(), full, depth + 1);
      } else if (about.type == H5O_TYPE_DATASET) {
        if (about.num_attrs != 0) refuse(full, "has attributes, which only groups may have");
        read_dataset(object.get(), full);
      } else {
        refuse(full, "is neither a group nor a dataset");
      }
    }
  }

  ContainerContents contents() const {
    ContainerContents all;
    for (const OwnedDataset& d : datasets_) all.datasets.push_back({d.path, d.type, d.shape, d.bytes.data()});
    all.attributes = attributes_;
    return all;
  }

 private:
  static std::string link_name(hid_t group, hsize_t i, const std::string& path) {
    H5L_info_t link;
    check_hdf5(H5Lget_info_by_idx(group, ".", H5_INDEX_NAME, H5_ITER_INC, i, &link, H5P_DEFAULT), "read a link");
    if (link.type != H5L_TYPE_HARD) refuse(path, "contains a soft or external link");
    char name[io::longest_path + 1];
    const auto size = H5Lget_name_by_idx(group, ".", H5_INDEX_NAME, H5_ITER_INC, i, name, sizeof name, H5P_DEFAULT);
    if (size < 0 || static_cast<std::size_t>(size) > io::longest_path)
      refuse(path, "contains a name that cannot be read");
    return name;
  }

  static ElementType dataset_type(hid_t dataset, const std::string& path) {
    const Hdf5Handle type(H5Dget_type(dataset), H5Tclose, "read a type");
    for (const ElementType known : types) {
      if (H5Tequal(type.get(), hdf5_type(known)) > 0) return known;
    }
    refuse(path, "has a type that containers do not support");
  }

  static std::vector<Index> dataset_shape(hid_t dataset, const std::string& path) {
    const Hdf5Handle space(H5Dget_space(dataset), H5Sclose, "read a shape");
    const H5S_class_t kind = H5Sget_simple_extent_type(space.get());
    if (kind == H5S_SCALAR) return {};
    const int rank = H5Sget_simple_extent_ndims(space.get());
    if (kind != H5S_SIMPLE || rank < 1 || rank > static_cast<int>(io::largest_rank))
      refuse(path, "has no simple shape");
    hsize_t extents[H5S_MAX_RANK];
    check_hdf5(H5Sget_simple_extent_dims(space.get(), extents, nullptr), "read a shape");
    std::vector<Index> shape;
    for (int i = 0; i < rank; ++i) {
      if (extents[i] > static_cast<hsize_t>(INT64_MAX)) refuse(path, "has an extent beyond 63 bits");
      shape.push_back(static_cast<Index>(extents[i]));
    }
    return shape;
  }

  // The storage of a completely written dataset. Chunks at its edges are stored whole.
  static std::uint64_t full_storage(hid_t creation, const OwnedDataset& d) {
    if (H5Pget_layout(creation) == H5D_CONTIGUOUS) return checked_bytes(d.type, d.shape);
    hsize_t chunk[H5S_MAX_RANK];
    if (H5Pget_chunk(creation, H5S_MAX_RANK, chunk) != static_cast<int>(d.shape.size()))
      refuse(d.path, "has chunks of another rank");
    std::vector<Index> padded = d.shape;
    for (std::size_t i = 0; i < padded.size(); ++i) {
      const auto extent = static_cast<Index>(chunk[i]);  // HDF5 allows 1 to 2^32 - 1.
      padded[i] = padded[i] / extent * extent + (padded[i] % extent == 0 ? 0 : extent);
    }
    return checked_bytes(d.type, padded);
  }

  // Refuses data that is outside the file, filtered or missing.
  static void check_storage(hid_t dataset, const OwnedDataset& d) {
    const Hdf5Handle creation(H5Dget_create_plist(dataset), H5Pclose, "read a dataset's storage");
    const H5D_layout_t layout = H5Pget_layout(creation.get());
    if (layout != H5D_CONTIGUOUS && layout != H5D_CHUNKED) refuse(d.path, "is neither contiguous nor chunked");
    if (H5Pget_external_count(creation.get()) != 0) refuse(d.path, "is stored in another file");
    if (H5Pget_nfilters(creation.get()) != 0) refuse(d.path, "is compressed or filtered");
    // HDF5 reads missing data as zeros.
    if (H5Dget_storage_size(dataset) != full_storage(creation.get(), d)) {
      refuse(d.path, "was never written, or only partly");
    }
  }

  void read_dataset(hid_t dataset, const std::string& path) {
    if (datasets_.size() == io::most_datasets) refuse(path, "exceeds the largest number of datasets");
    OwnedDataset read{path, dataset_type(dataset, path), dataset_shape(dataset, path), {}};
    const std::uint64_t bytes = checked_bytes(read.type, read.shape);
    if (bytes > budget_) refuse(path, "is larger than the file");
    budget_ -= bytes;
    check_storage(dataset, read);
    read.bytes.resize(bytes);
    if (bytes > 0) {
      check_hdf5(H5Dread(dataset, hdf5_type(read.type), H5S_ALL, H5S_ALL, H5P_DEFAULT, read.bytes.data()),
                 fmt::format("read {}", path));
    }
    datasets_.push_back(std::move(read));
  }

  void read_attributes(hid_t group, const std::string& path) {
    H5O_info_t about;
    check_hdf5(H5Oget_info(group, &about), "inspect a group");
    if (about.num_attrs > io::most_attributes - attributes_.size()) refuse(path, "has too many attributes");
    for (hsize_t i = 0; i < about.num_attrs; ++i) {
      const Hdf5Handle attribute(H5Aopen_by_idx(group, ".", H5_INDEX_NAME, H5_ITER_INC, i, H5P_DEFAULT, H5P_DEFAULT),
                                 H5Aclose, "open an attribute");
      char name[io::longest_path + 1];
      const auto size = H5Aget_name(attribute.get(), sizeof name, name);
      if (size < 0 || static_cast<std::size_t>(size) > io::longest_path)
        refuse(path, "has an attribute without a name");
      Attribute read{path, name, attribute_value(attribute.get(), path)};
      check_attribute(read);
      attributes_.push_back(std::move(read));
    }
  }

  static AttributeValue attribute_value(hid_t attribute, const std::string& path) {
    const Hdf5Handle space(H5Aget_space(attribute), H5Sclose, "read an attribute");
    if (H5Sget_simple_extent_type(space.get()) != H5S_SCALAR) refuse(path, "has an attribute that is not a scalar");
    const Hdf5Handle type(H5Aget_type(attribute), H5Tclose, "read an attribute");
    if (H5Tequal(type.get(), H5T_STD_I64LE) > 0) {
      std::int64_t value = 0;
      check_hdf5(H5Aread(attribute, H5T_STD_I64LE, &value), "read an attribute");
      return value;
    }
    if (H5Tequal(type.get(), H5T_IEEE_F64LE) > 0) {
      double value = 0;
      check_hdf5(H5Aread(attribute, H5T_IEEE_F64LE, &value), "read an attribute");
      return value;
    }
    if (H5Tget_class(type.get()) != H5T_STRING)
      refuse(path, "has an attribute of a type that containers do not support");
    return H5Tis_variable_str(type.get()) > 0 ? variable_text(attribute, type, space)
                                              : fixed_text(attribute, type, path);
  }

  static std::string fixed_text(hid_t attribute, const Hdf5Handle& type, const std::string& path) {
    const std::size_t size = H5Tget_size(type.get());
    if (size > io::longest_attribute) refuse(path, "has an attribute that is too long");
    std::string text(size, '\0');
    check_hdf5(H5Aread(attribute, type.get(), text.data()), "read an attribute");
    return text.substr(0, text.find('\0'));
  }

  // h5py writes strings of variable length.
  static std::string variable_text(hid_t attribute, const Hdf5Handle& type, const Hdf5Handle& space) {
    char* stored = nullptr;
    check_hdf5(H5Aread(attribute, type.get(), &stored), "read an attribute");
    std::string text(stored == nullptr ? "" : stored);
    check_hdf5(H5Dvlen_reclaim(type.get(), space.get(), H5P_DEFAULT, &stored), "read an attribute");
    return text;
  }

  std::uint64_t budget_;
  std::vector<OwnedDataset> datasets_;
  std::vector<Attribute> attributes_;
};

// The file's size. Refuses files that are not complete HDF5 files, or that have a seal.
std::uint64_t checked_size(const std::string& path) {
  std::vector<std::byte> bytes;
  try {
    bytes = files::read_bytes(path);
  } catch (const DataError& error) {
    throw CheckpointError(error.what());
  }
  if (bytes.empty()) throw MalformedContainer("it is empty");
  if (!has_hdf5_signature(bytes)) throw MalformedContainer("it is not an HDF5 file");
  if (find_seal(bytes)) throw MalformedContainer("it has a seal");
  const auto end = hdf5_end(bytes);
  if (!end || *end != bytes.size()) throw MalformedContainer("it is truncated or damaged");
  return bytes.size();
}

bool has_seal(const std::string& path) {
  try {
    return find_seal(files::read_bytes(path)).has_value();
  } catch (const DataError& error) {
    throw CheckpointError(error.what());
  }
}

}  // namespace

Container read_plain_hdf5(const std::string& path) {
  try {
    PlainReader reader(checked_size(path));
    {
      const Hdf5Session session;
      const Hdf5Handle access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose, "prepare a file");
      // Not the driver that the environment may select.
      check_hdf5(H5Pset_fapl_sec2(access.get()), "prepare a file");
      const Hdf5Handle file(H5Fopen(path.c_str(), H5F_ACC_RDONLY, access.get()), H5Fclose, "open it");
      const Hdf5Handle root(H5Gopen2(file.get(), "/", H5P_DEFAULT), H5Gclose, "open the root group");
      reader.read_group(root.get(), "/", 0);
    }
    return Container::from_bytes(seal_contents(reader.contents()), path);
  } catch (const MalformedContainer& reason) {
    throw CheckpointError(fmt::format("cannot load {}: {}", path, reason.what()));
  } catch (const std::bad_alloc&) {
    throw ResourceError(fmt::format("cannot load {}: its datasets could not be allocated", path), 0);
  }
}

bool reseal(FileSystem* fs, const std::string& path) {
  if (has_seal(path)) {
    Container::load(path);
    return false;
  }
  const Container container = read_plain_hdf5(path);
  // Replace the target of a link such as latest.h5, not the link.
  files::write_durably(fs, std::filesystem::canonical(path).string(), container.bytes());
  return true;
}

}  // namespace handgrad
