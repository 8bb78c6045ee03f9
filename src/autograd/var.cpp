#include "handgrad/autograd/var.h"

#include <fmt/format.h>

#include <complex>

#include "handgrad/autograd/graph.h"
#include "handgrad/core/errors.h"

namespace handgrad {

template <class S>
NodeHandle<S>::NodeHandle(std::shared_ptr<Graph<S>> graph, int id, Index generation)
    : graph_(std::move(graph)), id_(id), generation_(generation) {
  if (graph_) graph_->pin(id_, generation_);
}

template <class S>
NodeHandle<S>& NodeHandle<S>::operator=(NodeHandle other) noexcept {
  std::swap(graph_, other.graph_);
  std::swap(id_, other.id_);
  std::swap(generation_, other.generation_);
  return *this;
}

template <class S>
NodeHandle<S>::~NodeHandle() {
  if (graph_) graph_->unpin(id_, generation_);
}

template <class S>
Graph<S>& NodeHandle<S>::graph() const {
  if (!graph_) throw Error("value: an empty handle was used");
  graph_->check(generation_, "value");
  return *graph_;
}

template <class S>
View<const S> Var<S>::view() const {
  return {graph().value(id()) + offset_, shape_, strides_};
}

template <class S>
S Var<S>::item() const {
  if (size() != 1) throw ShapeError(fmt::format("item: the value must have one element, got {}", shape_.to_string()));
  return *view().data;
}

template <class S>
Var<S> Var<S>::slice(int axis, Index begin, Index count) const {
  const int a = shape_.axis_index(axis);
  if (begin < 0 || count < 1 || count > shape_[a] - begin) {
    throw RangeError(fmt::format("slice: 1 or more elements inside axis {} of {} are needed, got {} from {} on", axis,
                                 shape_.to_string(), count, begin));
  }
  Var part = *this;
  part.offset_ += begin * strides_[a];
  part.shape_ = shape_.with(a, count);
  return part;
}

template <class S>
Var<S> Var<S>::split_axis(int axis, Index n, Index w) const {
  const auto at = static_cast<std::size_t>(shape_.axis_index(axis)), rank = static_cast<std::size_t>(shape_.rank());
  if (shape_.rank() == Shape::max_rank || n < 1 || w < 1 || shape_[axis] / n != w || shape_[axis] % n != 0) {
    throw ShapeError(fmt::format("split: axis {} of {} cannot be read as ({}, {})", axis, shape_.to_string(), n, w));
  }
  std::array<Index, Shape::max_rank> extents{};
  Var split = *this;
  for (std::size_t i = 0; i < rank; ++i) {
    extents[i < at ? i : i + 1] = shape_.extents()[i];
    split.strides_[i < at ? i : i + 1] = strides_[i];
  }
  extents[at] = n;
  extents[at + 1] = w;
  split.strides_[at] = strides_[at] * w;
  split.shape_ = Shape(std::span<const Index>(extents.data(), rank + 1));
  return split;
}

template <class S>
Var<S> Var<S>::split_last(Index parts) const {
  return split_axis(-1, parts, parts > 0 ? shape_[-1] / parts : 0);
}

template <class S>
Var<S> Var<S>::reshape(const Shape& shape) const {
  if (shape.size() != size() || !view().is_contiguous()) {
    throw ShapeError(fmt::format("reshape: {} cannot be read as {}", shape_.to_string(), shape.to_string()));
  }
  Var other = *this;
  other.shape_ = shape;
  other.strides_ = contiguous_strides(shape);
  return other;
}

template <class S>
Var<S> Var<S>::transpose(int axis, int other) const {
  const auto a = static_cast<std::size_t>(shape_.axis_index(axis)),
             b = static_cast<std::size_t>(shape_.axis_index(other));
  std::array<Index, Shape::max_rank> extents{};
  std::copy(shape_.extents().begin(), shape_.extents().end(), extents.begin());
  std::swap(extents[a], extents[b]);
  Var exchanged = *this;
  exchanged.shape_ = Shape(std::span<const Index>(extents.data(), shape_.rank()));
  std::swap(exchanged.strides_[a], exchanged.strides_[b]);
  return exchanged;
}

template <class S>
Var<S> Var<S>::detach() const {
  Var other = *this;
  other.detached_ = true;
  return other;
}

template <class S>
Var<S> Var<S>::keep() const {
  graph().node(id()).kept = true;
  return *this;
}

template <class S>
View<const S> Var<S>::gradient() const {
  const S* gradient = graph().node(id()).gradient.data;
  if (!gradient) {
    throw Error("gradient: there is none (not a leaf, not marked by keep(), or not reached by backward())");
  }
  return {gradient + offset_, shape_, strides_};
}

template class NodeHandle<float>;
template class NodeHandle<double>;
template class NodeHandle<std::complex<double>>;
template class Var<float>;
template class Var<double>;
template class Var<std::complex<double>>;

}  // namespace handgrad
