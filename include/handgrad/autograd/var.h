#pragma once

#include <utility>

#include "handgrad/core/views.h"

namespace handgrad {

template <class S>
class Tape;
template <class S>
class Graph;

/// A handle to a value on a tape, or to a part of one: {graph, id, generation, view}. It owns no memory; as long as a
/// handle exists, its value stays. Copies are cheap. Heads and slices are Vars of the same node, without a copy.
///
/// A handle from before Tape::reset() throws Error when it is used; a handle may outlive its tape.
template <class S>
class Var {
 public:
  Var() = default;
  Var(const Var& other);
  Var(Var&& other) noexcept;
  Var& operator=(Var other) noexcept;
  ~Var();

  explicit operator bool() const { return graph_ != nullptr; }
  const Shape& shape() const { return shape_; }
  Index extent(int axis) const { return shape_[axis]; }
  Index size() const { return shape_.size(); }

  View<const S> view() const;
  /// As rows; `operation` opens the message of the ShapeError that says why this is not possible.
  Rows<const S> rows(const char* operation = "value") const { return view().rows(operation); }
  Heads<const S> heads() const { return view().heads(); }
  /// The only element of a value of one element. Throws ShapeError for others. Holds nothing.
  S item() const;

  /// Elements [begin, begin + count) of an axis. Throws RangeError.
  Var slice(int axis, Index begin, Index count) const;
  /// An axis of n x w elements read as two axes (n, w). Throws ShapeError if the extent differs.
  Var split_axis(int axis, Index n, Index w) const;
  /// (..., n x w) read as (..., n, w). Throws ShapeError if n does not divide the last extent.
  Var split_last(Index parts) const;
  /// The same elements under another shape; the view must be dense. Throws ShapeError.
  Var reshape(const Shape& shape) const;
  /// Two axes exchanged, without moving an element.
  Var transpose(int axis, int other) const;
  /// The same value, through which no gradient flows.
  Var detach() const;
  /// Value and gradient of the whole node stay until reset().
  Var keep() const;

  /// The gradient of this part: of a leaf, or of a node marked keep(), after backward(). Throws Error if there is none.
  View<const S> gradient() const;

  Graph<S>& graph() const;
  int id() const { return id_; }
  bool detached() const { return detached_; }
  Index offset() const { return offset_; }
  const Strides& strides() const { return strides_; }

 private:
  friend class Graph<S>;
  friend class Tape<S>;
  Var(Graph<S>* graph, int id, Index generation, const Shape& shape);

  Graph<S>* graph_ = nullptr;
  Index generation_ = 0;
  Index offset_ = 0;
  int id_ = -1;
  bool detached_ = false;
  Shape shape_;
  Strides strides_{};
};

}  // namespace handgrad
