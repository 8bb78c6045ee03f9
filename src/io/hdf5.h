#pragma once

// libhdf5 as this folder uses it, and nobody else: handles that close themselves, its messages silenced, one thread at
// a time.

#define H5_USE_110_API
#include <hdf5.h>

#include <mutex>
#include <string_view>
#include <utility>

#include "handgrad/io/container.h"

namespace handgrad {

/// A handle of libhdf5 and the function that closes it. An invalid one throws MalformedContainer when it is taken over.
class Handle {
 public:
  Handle(hid_t id, herr_t (*closer)(hid_t), std::string_view what);
  ~Handle() {
    if (id_ >= 0) close_(id_);
  }
  Handle(Handle&& other) noexcept : id_(std::exchange(other.id_, -1)), close_(other.close_) {}
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;

  hid_t get() const { return id_; }
  /// Closes now; false if libhdf5 could not, and the handle is lost.
  bool close() { return close_(std::exchange(id_, -1)) >= 0; }

 private:
  hid_t id_;
  herr_t (*close_)(hid_t);
};

/// While it lives, libhdf5 prints nothing, and no other thread of ours is inside it: Debian's build has state of its
/// own and no locks. What it printed to before is restored.
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
void check_hdf5(herr_t result, std::string_view what);

/// The type in files, which is the type in memory, too.
hid_t hdf5_type(ElementType type);

}  // namespace handgrad
