#pragma once

// The only use of libhdf5: handles that are closed automatically, no messages, one thread at a time.

#define H5_USE_110_API
#include <hdf5.h>

#include <mutex>
#include <string_view>
#include <utility>

#include "handgrad/io/container.h"

namespace handgrad {

/// Owns a libhdf5 handle. The constructor throws MalformedContainer("HDF5 cannot <operation>") for an invalid one.
class Hdf5Handle {
 public:
  Hdf5Handle(hid_t id, herr_t (*closer)(hid_t), std::string_view operation);
  ~Hdf5Handle() {
    if (id_ >= 0) close_(id_);
  }
  Hdf5Handle(Hdf5Handle&& other) noexcept : id_(std::exchange(other.id_, -1)), close_(other.close_) {}
  Hdf5Handle(const Hdf5Handle&) = delete;
  Hdf5Handle& operator=(const Hdf5Handle&) = delete;

  hid_t get() const { return id_; }
  /// Closes the handle. Returns false if libhdf5 failed; the handle is then leaked.
  bool close() { return close_(std::exchange(id_, -1)) >= 0; }

 private:
  hid_t id_;
  herr_t (*close_)(hid_t);
};

/// During its lifetime libhdf5 prints no messages, and no other thread of the program enters libhdf5: Debian's build
/// has global state and no locks. The destructor restores the previous error handler.
class Hdf5Session {
 public:
  Hdf5Session();
  ~Hdf5Session();
  Hdf5Session(const Hdf5Session&) = delete;
  Hdf5Session& operator=(const Hdf5Session&) = delete;

 private:
  std::lock_guard<std::mutex> alone_;
  H5E_auto2_t print_ = nullptr;
  void* print_data_ = nullptr;
};

/// Throws MalformedContainer if libhdf5 reports a failure.
void check_hdf5(herr_t result, std::string_view operation);

/// The libhdf5 type of an element, in files and in memory.
hid_t hdf5_type(ElementType type);

}  // namespace handgrad
