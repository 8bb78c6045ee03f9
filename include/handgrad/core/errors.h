#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

namespace handgrad {

/// Base of all errors that the library throws. The message has the operation, the rule and the values received.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Shapes that do not match, or that an operation does not accept.
class ShapeError : public Error {
 public:
  using Error::Error;
};

/// A number outside its range: an index, a token, a position, an option.
class RangeError : public Error {
 public:
  using Error::Error;
};

/// A configuration that is malformed or incomplete, or that contradicts itself or the run that it is used with.
class ConfigError : public Error {
 public:
  using Error::Error;
};

/// Text or tokens that cannot be used, or files that cannot be read or written.
class DataError : public Error {
 public:
  using Error::Error;
};

/// A checkpoint that is missing, damaged, of another program, or of another model.
class CheckpointError : public Error {
 public:
  using Error::Error;
};

/// A NaN or an infinity where only finite numbers are valid.
class NonFiniteError : public Error {
 public:
  using Error::Error;
};

/// Memory that could not be allocated; `bytes` is the requested amount.
class ResourceError : public Error {
 public:
  ResourceError(const std::string& what, std::uint64_t bytes) : Error(what), bytes_(bytes) {}
  std::uint64_t bytes() const { return bytes_; }

 private:
  std::uint64_t bytes_;
};

}  // namespace handgrad
