#include "io/hdf5.h"

#include <fmt/format.h>

#include "io/trailer.h"

namespace handgrad {
namespace {

std::mutex& library_mutex() {
  static std::mutex mutex;
  return mutex;
}

}  // namespace

Hdf5Handle::Hdf5Handle(hid_t id, herr_t (*closer)(hid_t), std::string_view operation) : id_(id), close_(closer) {
  if (id < 0) throw MalformedContainer(fmt::format("HDF5 cannot {}", operation));
}

Hdf5Session::Hdf5Session() : alone_(library_mutex()) {
  H5Eget_auto2(H5E_DEFAULT, &print_, &print_data_);
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
}

Hdf5Session::~Hdf5Session() {
  H5Eclear2(H5E_DEFAULT);
  H5Eset_auto2(H5E_DEFAULT, print_, print_data_);
}

void check_hdf5(herr_t result, std::string_view operation) {
  if (result < 0) throw MalformedContainer(fmt::format("HDF5 cannot {}", operation));
}

hid_t hdf5_type(ElementType type) {
  switch (type) {
    case ElementType::float32:
      return H5T_IEEE_F32LE;
    case ElementType::float64:
      return H5T_IEEE_F64LE;
    case ElementType::int64:
      return H5T_STD_I64LE;
    case ElementType::uint32:
      return H5T_STD_U32LE;
    case ElementType::uint8:
      return H5T_STD_U8LE;
  }
  return -1;
}

}  // namespace handgrad
