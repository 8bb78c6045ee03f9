#pragma once

#include <memory>
#include <utility>

#include "handgrad/core/views.h"

namespace handgrad {

template <class S>
class Tape;
template <class S>
class Graph;

/// Shared ownership of a graph and of one node in it.
template <class S>
class NodeHandle {
 public:
  NodeHandle() = default;
  NodeHandle(std::shared_ptr<Graph<S>> graph, int id, Index generation);
  NodeHandle(const NodeHandle& other) : NodeHandle(other.graph_, other.id_, other.generation_) {}
  NodeHandle(NodeHandle&&) noexcept = default;
  NodeHandle& operator=(NodeHandle other) noexcept;
  ~NodeHandle();

  explicit operator bool() const { return graph_ != nullptr; }
  /// Throws Error for an empty handle, for one from before reset(), and for one whose tape was destroyed.
  Graph<S>& graph() const;
  int id() const { return id_; }

 private:
  std::shared_ptr<Graph<S>> graph_;
  int id_ = -1;
  Index generation_ = 0;
};

/// A value on a tape, or a part of it: a handle of a node and a view of its elements. The value is held as long as a
/// handle exists. Copies are cheap; heads and slices are Vars of the same node and copy no elements.
///
/// Every use of a Var from before Tape::reset() throws Error. A Var may outlive its tape.
template <class S>
class Var {
 public:
  Var() = default;

  explicit operator bool() const { return static_cast<bool>(node_); }
  const Shape& shape() const { return shape_; }
  Index extent(int axis) const { return shape_[axis]; }
  Index size() const { return shape_.size(); }

  View<const S> view() const;
  /// The value as a matrix of rows. Throws ShapeError, which names `operation`, if the memory does not have this
  /// layout.
  Rows<const S> rows(const char* operation = "value") const { return view().rows(operation); }
  Heads<const S> heads(const char* operation = "value") const { return view().heads(operation); }
  /// The value of a single element. Throws ShapeError if there are more.
  S item() const;

  /// Elements [begin, begin + count) of an axis. Throws RangeError for elements outside the axis.
  Var slice(int axis, Index begin, Index count) const;
  /// An axis of n x w elements read as two axes (n, w). Throws ShapeError if the extent differs.
  Var split_axis(int axis, Index n, Index w) const;
  /// (..., n x w) read as (..., n, w). Throws ShapeError if n does not divide the last extent.
  Var split_last(Index parts) const;
  /// The same elements in row-major order under another shape. Throws ShapeError if the view is not contiguous.
  Var reshape(const Shape& shape) const;
  /// Two axes exchanged; no element is moved.
  Var transpose(int axis, int other) const;
  /// The same value as a constant: no gradient is propagated through it.
  Var detach() const;
  /// Keeps the value and the gradient of the whole node until reset().
  Var keep() const;

  /// The gradient of a leaf, or of a node marked by keep(), after backward(). Throws Error if there is none.
  View<const S> gradient() const;

  Graph<S>& graph() const { return node_.graph(); }
  int id() const { return node_.id(); }
  bool detached() const { return detached_; }
  Index offset() const { return offset_; }
  const Strides& strides() const { return strides_; }

 private:
  friend class Graph<S>;
  friend class Tape<S>;
  Var(NodeHandle<S> node, const Shape& shape)
      : node_(std::move(node)), shape_(shape), strides_(contiguous_strides(shape)) {}

  NodeHandle<S> node_;
  Index offset_ = 0;
  bool detached_ = false;
  Shape shape_;
  Strides strides_{};
};

}  // namespace handgrad
