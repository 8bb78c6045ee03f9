#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "handgrad/autograd/graph.h"
#include "handgrad/core/tensor.h"

namespace handgrad {

/// Records operations in order, and owns the memory of their values. backward() visits them once, from last to first.
/// With recording off, the same forward code keeps nothing. A tape must be used by one thread; Tape<complex> never
/// records. Every call on a moved-from tape throws Error.
template <class S>
class Tape {
 public:
  explicit Tape(bool recording = !is_complex_v<S>);
  ~Tape();
  Tape(Tape&&) noexcept = default;
  Tape& operator=(Tape&& other) noexcept {
    std::swap(graph_, other.graph_);
    return *this;
  }

  bool recording() const { return graph().recording_; }

  /// A value without gradient: a copy of `x`. Throws ShapeError for an empty tensor.
  Var<S> constant(const Tensor<S>& x);
  /// A value with a gradient: a copy of `x`.
  Var<S> variable(const Tensor<S>& x);
  /// A value without gradient, in memory of the caller, which must not change until reset(). Throws Error for an empty
  /// view.
  Var<S> borrow(View<const S> x);
  /// A parameter. Its gradient is added to the gradient in the store, if there is one. Throws RangeError for an unknown
  /// id, Error before allocate() of the store.
  Var<S> parameter(const ParameterStore<S>& store, ParameterId id);
  /// The second use of a parameter: its gradient is added to the second gradient in the store, if there is one.
  Var<S> parameter_second_use(const ParameterStore<S>& store, ParameterId id);

  /// Adds the gradient of y, a single element, to the gradients of all values that y depends on. Throws ShapeError if y
  /// has more elements, Error for a second call before reset(), or if parameters have changed since they were read.
  void backward(const Var<S>& y);
  /// The same for a y of any shape: the gradient of <y, seed>. `seed` has the shape of y.
  void backward(const Var<S>& y, const Tensor<S>& seed);

  /// Removes all nodes and keeps the memory. Every later use of a Var from before throws Error.
  void reset() { graph().reset(); }

  /// Names the operations until the end of the scope. Nested names are joined by '/'.
  class Scope {
   public:
    Scope(Tape& tape, std::string_view name) : graph_(&tape.graph()), before_(graph_->scope_) {
      graph_->scope_ = graph_->intern(name);
    }
    ~Scope() { graph_->scope_ = before_; }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    Graph<S>* graph_;
    int before_;
  };

  /// Passes every operation to the observer, which is not owned, until unobserve().
  void observe(GraphObserver<S>& observer) { graph().observers_.push_back(&observer); }
  void unobserve(GraphObserver<S>& observer) noexcept {
    if (graph_) std::erase(graph_->observers_, &observer);
  }

  /// Observes until the end of the scope.
  class Watch {
   public:
    Watch(Tape& tape, GraphObserver<S>& observer) : tape_(tape), observer_(observer) { tape_.observe(observer_); }
    ~Watch() { tape_.unobserve(observer_); }
    Watch(const Watch&) = delete;
    Watch& operator=(const Watch&) = delete;

   private:
    Tape& tape_;
    GraphObserver<S>& observer_;
  };

  /// From now on memory is filled with NaN when it is acquired and when it is released. Reads of memory that was not
  /// written, and reads through views after reset(), then give NaN.
  void poison_memory() { graph().pool_.set_poison(true); }

  /// Nodes since reset(), and the number of them whose value is held.
  Index nodes() const { return std::ssize(graph().nodes_); }
  Index live_nodes() const { return graph().live_; }
  /// Bytes of the tape's pool.
  Index pool_bytes() const { return graph().pool_.bytes(); }
  /// Operation and scope of the node of a value, for reports.
  std::string describe(const Var<S>& x) const;

 private:
  // Throws Error for a moved-from tape.
  Graph<S>& graph() const;

  std::shared_ptr<Graph<S>> graph_;
};

}  // namespace handgrad
