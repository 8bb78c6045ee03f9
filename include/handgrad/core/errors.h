#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

namespace handgrad {

/// Base of everything that the library throws: what was being done, the rule, the values received.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Shapes that do not fit together, or that an operation does not take.
class ShapeError : public Error {
 public:
  using Error::Error;
};

/// A number outside its range: an index, a token, a position, an option.
class RangeError : public Error {
 public:
  using Error::Error;
};

/// A configuration that is malformed, incomplete or contradicts itself or the run it meets.
class ConfigError : public Error {
 public:
  using Error::Error;
};

/// Text or tokens that cannot be used, or files that cannot be read or written.
class DataError : public Error {
 public:
  using Error::Error;
};

/// A checkpoint that is missing, damaged, foreign, or does not fit.
class CheckpointError : public Error {
 public:
  using Error::Error;
};

/// A NaN or an infinity where a finite number belongs.
class NonFiniteError : public Error {
 public:
  using Error::Error;
};

/// Memory that cannot be had; `bytes` is the amount asked for.
class ResourceError : public Error {
 public:
  ResourceError(const std::string& what, std::uint64_t bytes) : Error(what), bytes_(bytes) {}
  std::uint64_t bytes() const { return bytes_; }

 private:
  std::uint64_t bytes_;
};

}  // namespace handgrad
