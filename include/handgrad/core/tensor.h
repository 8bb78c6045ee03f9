#pragma once

#include <algorithm>
#include <span>

#include "handgrad/core/buffer.h"
#include "handgrad/core/views.h"

namespace handgrad {

/// A dense, row-major array that owns its memory. Moves; a copy is asked for by name.
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
  S* data() { return buffer_.data(); }
  const S* data() const { return buffer_.data(); }
  S& operator[](Index i) { return buffer_[i]; }
  const S& operator[](Index i) const { return buffer_[i]; }
  std::span<S> span() { return {data(), static_cast<std::size_t>(size())}; }
  std::span<const S> span() const { return {data(), static_cast<std::size_t>(size())}; }

  void fill(S value) { std::fill(buffer_.begin(), buffer_.end(), value); }
  Tensor copy() const { return Tensor(shape_, span()); }

  View<S> view() { return {data(), shape_, dense_strides(shape_)}; }
  View<const S> view() const { return {data(), shape_, dense_strides(shape_)}; }
  Rows<S> rows() { return view().rows(); }
  Rows<const S> rows() const { return view().rows(); }
  Heads<S> heads() { return view().heads(); }
  Heads<const S> heads() const { return view().heads(); }

 private:
  Shape shape_;
  Buffer<S> buffer_;
};

namespace detail {
[[noreturn]] void refuse_values(const Shape& shape, Index count);
}

template <class S>
Tensor<S>::Tensor(Shape shape, std::span<const S> values) : shape_(shape) {
  if (static_cast<Index>(values.size()) != shape.size()) {
    detail::refuse_values(shape, static_cast<Index>(values.size()));
  }
  buffer_ = Buffer<S>(shape.size());
  std::copy(values.begin(), values.end(), buffer_.begin());
}

}  // namespace handgrad
