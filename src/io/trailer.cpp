#include "io/trailer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <tuple>

#include "handgrad/files/hash.h"

namespace handgrad {
namespace {

static_assert(std::endian::native == std::endian::little, "containers are written in the byte order of memory");

// The line end in it reveals a transfer in text mode.
constexpr std::array<char, 8> magic = {'h', 'g', 's', 'e', 'a', 'l', '\r', '\n'};
constexpr std::array<unsigned char, 8> signature = {0x89, 'H', 'D', 'F', '\r', '\n', 0x1a, '\n'};
constexpr std::size_t hash_bytes = 16;
constexpr std::size_t offset_alignment = 8;

enum class AttributeKind : std::uint8_t { integer = 1, real = 2, text = 3 };

class Encoder {
 public:
  explicit Encoder(std::vector<std::byte>& out) : out_(out) {}

  template <class T>
  void number(T value) {
    raw(&value, sizeof value);
  }
  void text(std::string_view value) {
    number(static_cast<std::uint16_t>(value.size()));
    raw(value.data(), value.size());
  }
  void raw(const void* data, std::size_t size) {
    const auto* first = static_cast<const std::byte*>(data);
    out_.insert(out_.end(), first, first + size);
  }

 private:
  std::vector<std::byte>& out_;
};

class Decoder {
 public:
  explicit Decoder(std::span<const std::byte> in) : in_(in) {}

  template <class T>
  T number() {
    T value;
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
    return value;
  }
  std::string text() {
    const auto size = number<std::uint16_t>();
    const auto raw = take(size);
    return {reinterpret_cast<const char*>(raw.data()), raw.size()};
  }
  bool done() const { return in_.empty(); }

 private:
  std::span<const std::byte> take(std::size_t size) {
    if (size > in_.size()) throw MalformedContainer("its index ends early");
    const auto taken = in_.first(size);
    in_ = in_.subspan(size);
    return taken;
  }

  std::span<const std::byte> in_;
};

void encode(Encoder& out, const DatasetEntry& d) {
  out.text(d.path);
  out.number(d.type);
  out.number(static_cast<std::uint8_t>(d.shape.size()));
  for (const Index extent : d.shape) out.number(extent);
  out.number(d.offset);
  out.number(d.bytes);
  out.number(d.hash);
}

void encode(Encoder& out, const Attribute& a) {
  out.text(a.group);
  out.text(a.name);
  if (const auto* integer = std::get_if<std::int64_t>(&a.value)) {
    out.number(AttributeKind::integer);
    out.number(*integer);
  } else if (const auto* real = std::get_if<double>(&a.value)) {
    out.number(AttributeKind::real);
    out.number(*real);
  } else {
    out.number(AttributeKind::text);
    out.text(std::get<std::string>(a.value));
  }
}

DatasetEntry decode_dataset(Decoder& in, std::uint64_t image_bytes) {
  DatasetEntry d;
  d.path = in.text();
  check_path(d.path);
  d.type = in.number<ElementType>();
  if (io::element_bytes(d.type) == 0) {
    throw MalformedContainer(fmt::format("{} has the unknown type {}", d.path, static_cast<int>(d.type)));
  }
  const auto rank = in.number<std::uint8_t>();
  if (rank > io::largest_rank) throw MalformedContainer(fmt::format("{} has {} axes", d.path, rank));
  for (int i = 0; i < rank; ++i) d.shape.push_back(in.number<Index>());
  d.offset = in.number<std::uint64_t>();
  d.bytes = in.number<std::uint64_t>();
  d.hash = in.number<std::uint64_t>();
  if (d.bytes != checked_bytes(d.type, d.shape)) {
    throw MalformedContainer(fmt::format("{} has {} bytes, which is not the size of its shape", d.path, d.bytes));
  }
  if (d.offset > image_bytes || d.bytes > image_bytes - d.offset || d.offset % offset_alignment != 0) {
    throw MalformedContainer(fmt::format("{} is not inside the file", d.path));
  }
  return d;
}

Attribute decode_attribute(Decoder& in) {
  Attribute a;
  a.group = in.text();
  a.name = in.text();
  switch (in.number<AttributeKind>()) {
    case AttributeKind::integer:
      a.value = in.number<std::int64_t>();
      break;
    case AttributeKind::real:
      a.value = in.number<double>();
      break;
    case AttributeKind::text:
      a.value = in.text();
      break;
    default:
      throw MalformedContainer("it has an attribute of an unknown type");
  }
  check_attribute(a);
  return a;
}

bool before(const Attribute& a, const Attribute& b) { return std::tie(a.group, a.name) < std::tie(b.group, b.name); }

void check_overlaps(const std::vector<DatasetEntry>& datasets) {
  std::vector<const DatasetEntry*> by_offset;
  for (const DatasetEntry& d : datasets) {
    if (d.bytes > 0) by_offset.push_back(&d);
  }
  std::sort(by_offset.begin(), by_offset.end(), [](const auto* a, const auto* b) { return a->offset < b->offset; });
  for (std::size_t i = 1; i < by_offset.size(); ++i) {
    if (by_offset[i]->offset < by_offset[i - 1]->offset + by_offset[i - 1]->bytes) {
      throw MalformedContainer(fmt::format("{} and {} overlap", by_offset[i - 1]->path, by_offset[i]->path));
    }
  }
}

}  // namespace

std::size_t io::element_bytes(ElementType type) {
  switch (type) {
    case ElementType::float32:
    case ElementType::uint32:
      return 4;
    case ElementType::float64:
    case ElementType::int64:
      return 8;
    case ElementType::uint8:
      return 1;
  }
  return 0;
}

std::string_view io::element_name(ElementType type) {
  constexpr std::array<std::string_view, 6> names = {"?", "float32", "float64", "int64", "uint32", "uint8"};
  const auto number = static_cast<std::size_t>(type);
  return number < names.size() ? names[number] : names[0];
}

void check_path(std::string_view path) {
  const auto refuse = [&] {
    const auto shown = path.substr(0, 80);
    std::string printable;
    for (const char c : shown) printable += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? '?' : c;
    throw MalformedContainer(fmt::format("\"{}\" is not a path of names joined by slashes", printable));
  };
  if (path.size() < 2 || path.size() > io::longest_path || path[0] != '/') refuse();
  for (std::size_t at = 0; at < path.size();) {
    const std::size_t end = std::min(path.find('/', at + 1), path.size());
    const std::string_view name = path.substr(at + 1, end - at - 1);
    if (name.empty() || name == "." || name == "..") refuse();
    at = end;
  }
  if (std::any_of(path.begin(), path.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; })) {
    refuse();
  }
}

std::uint64_t checked_bytes(ElementType type, const std::vector<Index>& shape) {
  if (shape.size() > io::largest_rank) throw MalformedContainer(fmt::format("{} axes are too many", shape.size()));
  auto bytes = static_cast<Index>(io::element_bytes(type));
  for (const Index extent : shape) {
    if (extent < 0 || __builtin_mul_overflow(bytes, extent, &bytes)) {
      throw MalformedContainer("a shape is negative or too large");
    }
  }
  return static_cast<std::uint64_t>(bytes);
}

void check_attribute(const Attribute& a) {
  if (a.group != "/") check_path(a.group);
  check_path("/" + a.name);
  const auto* text = std::get_if<std::string>(&a.value);
  if (text && (text->size() > io::longest_attribute || text->find('\0') != std::string::npos)) {
    throw MalformedContainer(fmt::format("the attribute {} is too long or contains a NUL", a.name));
  }
}

void check_paths(const std::vector<DatasetEntry>& datasets) {
  const auto order = [](const DatasetEntry& d, std::string_view path) { return d.path < path; };
  const auto is_dataset = [&](std::string_view path) {
    const auto found = std::lower_bound(datasets.begin(), datasets.end(), path, order);
    return found != datasets.end() && found->path == path;
  };
  for (std::size_t i = 0; i < datasets.size(); ++i) {
    const std::string& path = datasets[i].path;
    if (i > 0 && !(datasets[i - 1].path < path)) {
      throw MalformedContainer(fmt::format("{} is a duplicate or out of order", path));
    }
    for (std::size_t slash = path.rfind('/'); slash > 0; slash = path.rfind('/', slash - 1)) {
      if (is_dataset(std::string_view(path).substr(0, slash))) {
        throw MalformedContainer(fmt::format("{} is inside another dataset", path));
      }
    }
  }
}

std::size_t trailer_bytes(const ContainerIndex& index) {
  std::size_t bytes = seal_bytes + 8;
  for (const DatasetEntry& d : index.datasets) bytes += 2 + d.path.size() + 2 + 8 * d.shape.size() + 24;
  for (const Attribute& a : index.attributes) {
    const auto* text = std::get_if<std::string>(&a.value);
    bytes += 5 + a.group.size() + a.name.size() + (text ? 2 + text->size() : 8);
  }
  return bytes;
}

void append_trailer(std::vector<std::byte>& file, const ContainerIndex& index) {
  const std::uint64_t image_bytes = file.size();
  file.reserve(file.size() + trailer_bytes(index));
  Encoder out(file);
  out.number(static_cast<std::uint32_t>(index.datasets.size()));
  out.number(static_cast<std::uint32_t>(index.attributes.size()));
  for (const DatasetEntry& d : index.datasets) encode(out, d);
  for (const Attribute& a : index.attributes) encode(out, a);
  const std::uint64_t index_bytes = file.size() - image_bytes;

  out.raw(magic.data(), magic.size());
  out.number(io::container_format);
  out.number(static_cast<std::uint32_t>(seal_bytes));
  out.number(image_bytes);
  out.number(index_bytes);
  out.number(std::uint64_t{0});
  out.number(std::uint64_t{0});
  const auto hash = files::hash128(file);
  out.raw(hash.data(), hash_bytes);
}

std::optional<Seal> find_seal(std::span<const std::byte> file) {
  if (file.size() < seal_bytes) return std::nullopt;
  const auto end = file.last(seal_bytes);
  if (std::memcmp(end.data(), magic.data(), magic.size()) != 0) return std::nullopt;
  Decoder in(end.subspan(magic.size()));
  Seal seal;
  seal.format = in.number<std::uint32_t>();
  in.number<std::uint32_t>();
  seal.image_bytes = in.number<std::uint64_t>();
  seal.index_bytes = in.number<std::uint64_t>();
  const auto hash = files::hash128(file.first(file.size() - hash_bytes));
  seal.hash_holds = std::memcmp(hash.data(), file.last(hash_bytes).data(), hash_bytes) == 0;
  return seal;
}

bool lengths_hold(const Seal& seal, std::size_t file_bytes) {
  const std::uint64_t content = file_bytes - seal_bytes;
  return seal.image_bytes <= content && seal.index_bytes == content - seal.image_bytes;
}

ContainerIndex decode_index(std::span<const std::byte> index, std::uint64_t image_bytes) {
  Decoder in(index);
  ContainerIndex decoded;
  const auto datasets = in.number<std::uint32_t>();
  const auto attributes = in.number<std::uint32_t>();
  if (datasets > io::most_datasets || attributes > io::most_attributes) {
    throw MalformedContainer(fmt::format("{} datasets and {} attributes are too many", datasets, attributes));
  }
  for (std::uint32_t i = 0; i < datasets; ++i) decoded.datasets.push_back(decode_dataset(in, image_bytes));
  for (std::uint32_t i = 0; i < attributes; ++i) {
    decoded.attributes.push_back(decode_attribute(in));
    if (i > 0 && !before(decoded.attributes[i - 1], decoded.attributes[i])) {
      throw MalformedContainer(
          fmt::format("the attribute {} is a duplicate or out of order", decoded.attributes[i].name));
    }
  }
  if (!in.done()) throw MalformedContainer("its index has extra bytes at the end");
  check_paths(decoded.datasets);
  check_overlaps(decoded.datasets);
  return decoded;
}

bool has_hdf5_signature(std::span<const std::byte> file) {
  return file.size() >= signature.size() && std::memcmp(file.data(), signature.data(), signature.size()) == 0;
}

// The offset of the address depends on the superblock's version.
std::optional<std::uint64_t> hdf5_end(std::span<const std::byte> file) {
  constexpr std::size_t version_at = 8;
  if (!has_hdf5_signature(file) || file.size() < 64) return std::nullopt;
  const auto version = static_cast<unsigned>(file[version_at]);
  const std::size_t size_of_addresses = static_cast<std::size_t>(file[version < 2 ? 13 : 9]);
  if (version > 3 || size_of_addresses != 8) return std::nullopt;
  std::uint64_t end = 0;
  std::memcpy(&end, file.data() + (version == 0 ? 40 : version == 1 ? 44 : 28), sizeof end);
  return end;
}

}  // namespace handgrad
