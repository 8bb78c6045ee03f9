#pragma once

#include <string>

namespace handgrad {

/// Increased with every version of this program that changes the bits of training.
inline constexpr int numerics_version = 2;

/// What the bits of training depend on besides config, seed and data. The number of threads and the split of a batch
/// change no bit.
struct Numerics {
  int version = numerics_version;
  std::string gemm;          ///< gemm::kernel_name()
  std::string instructions;  ///< gemm::instruction_set(); empty if a file does not state it.
  bool operator==(const Numerics&) const = default;
};

/// The numerics of this program on this machine.
Numerics this_numerics();

}  // namespace handgrad
