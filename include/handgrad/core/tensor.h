#pragma once

#include <algorithm>
#include <span>

#include "handgrad/core/buffer.h"
#include "handgrad/core/views.h"

namespace handgrad {

namespace detail {
[[noreturn]] void refuse_values(const Shape& shape, Index count);
[[noreturn]] void refuse_empty_tensor();
[[noreturn]] void refuse_element(Index i, Index size);
}  // namespace detail

/// An owning, contiguous, row-major array. It can be moved; copy() makes a copy. One that was default-constructed or
/// moved from is empty, and its views throw ShapeError. Views are non-owning and cannot be taken of a temporary.
template <class S>
class Tensor {
 public:
  Tensor() = default;
  /// Filled with zeros. Throws ResourceError.
  explicit Tensor(Shape shape) : shape_(shape), buffer_(shape.size()) { fill(S{}); }
  /// Filled with `values`, row by row. Throws ShapeError if their number differs from the shape's.
  Tensor(Shape shape, std::span<const S> values);
  Tensor(Shape shape, std::initializer_list<S> values) : Tensor(shape, std::span(values.begin(), values.size())) {}

  const Shape& shape() const { return shape_; }
  Index size() const { return buffer_.size(); }
  bool empty() const { return buffer_.size() == 0; }
  S* data() { return buffer_.data(); }
  const S* data() const { return buffer_.data(); }
  /// Element i, row by row. Throws RangeError outside [0, size()); data() is not checked.
  S& operator[](Index i) { return buffer_[checked(i)]; }
  const S& operator[](Index i) const { return buffer_[checked(i)]; }
  std::span<S> span() & { return {data(), static_cast<std::size_t>(size())}; }
  std::span<const S> span() const& { return {data(), static_cast<std::size_t>(size())}; }
  std::span<const S> span() const&& = delete;

  void fill(S value) { std::fill(buffer_.begin(), buffer_.end(), value); }
  Tensor copy() const { return empty() ? Tensor() : Tensor(shape_, span()); }

  View<S> view() & { return require_filled(), View<S>{data(), shape_, contiguous_strides(shape_)}; }
  View<const S> view() const& { return require_filled(), View<const S>{data(), shape_, contiguous_strides(shape_)}; }
  View<const S> view() const&& = delete;
  Rows<S> rows() & { return view().rows(); }
  Rows<const S> rows() const& { return view().rows(); }
  Rows<const S> rows() const&& = delete;
  Heads<S> heads() & { return view().heads(); }
  Heads<const S> heads() const& { return view().heads(); }
  Heads<const S> heads() const&& = delete;

 private:
  void require_filled() const {
    if (empty()) detail::refuse_empty_tensor();
  }
  Index checked(Index i) const {
    if (i < 0 || i >= buffer_.size()) detail::refuse_element(i, buffer_.size());
    return i;
  }

  Shape shape_;
  Buffer<S> buffer_;
};

template <class S>
Tensor<S>::Tensor(Shape shape, std::span<const S> values) : shape_(shape) {
  if (std::ssize(values) != shape.size()) {
    detail::refuse_values(shape, std::ssize(values));
  }
  buffer_ = Buffer<S>(shape.size());
  std::copy(values.begin(), values.end(), buffer_.begin());
}

}  // namespace handgrad
