#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "handgrad/autograd/graph.h"
#include "handgrad/core/tensor.h"

namespace handgrad {

/// The ordered list of what was done to values, and the memory they live in. backward() walks it once, last to first.
/// With recording off the same forward code keeps nothing. One tape belongs to one thread; Tape<complex> never records.
/// Every call on a tape that has been moved from throws Error.
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

  /// A value without gradient: a copy of `x`. Throws ShapeError for a tensor that holds nothing.
  Var<S> constant(const Tensor<S>& x);
  /// A value with a gradient: a copy of `x`.
  Var<S> variable(const Tensor<S>& x);
  /// A value without gradient in memory of the caller's, which must stay as it is until reset(). Throws Error for a
  /// view without memory.
  Var<S> borrow(View<const S> x);
  /// A parameter; its gradient is added to the store's, if the store has gradients. Throws RangeError for an unknown
  /// id, Error before the store's allocate().
  Var<S> parameter(const ParameterStore<S>& store, ParameterId id);
  /// The same for the second use of a parameter: its gradient is added to the store's second one, if there is one for
  /// this parameter.
  Var<S> parameter_second_use(const ParameterStore<S>& store, ParameterId id);

  /// Adds to the gradient of everything that y, a single element, depends on. Throws ShapeError if y has more elements,
  /// Error for a second call before reset(), or if parameters were changed since they were read.
  void backward(const Var<S>& y);
  /// The same for a y of any shape: the gradient of <y, seed>. `seed` is dense and has the shape of y.
  void backward(const Var<S>& y, const Tensor<S>& seed);

  /// Forgets everything and keeps the memory. Handles from before throw when they are used.
  void reset() { graph().reset(); }

  /// Names what is done while it lives: nested names are joined by '/'.
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

  /// Borrowed; told of every operation until unobserve().
  void observe(GraphObserver<S>& observer) { graph().observers_.push_back(&observer); }
  void unobserve(GraphObserver<S>& observer) noexcept {
    if (graph_) std::erase(graph_->observers_, &observer);
  }

  /// Observes for as long as it lives.
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

  /// From now on memory is filled with NaN before it is handed out and when it is given back: reads of what was never
  /// written, and reads through views after reset(), show as NaN.
  void poison_memory() { graph().pool_.set_poison(true); }

  /// Nodes since reset(), and those of them whose value is held.
  Index nodes() const { return std::ssize(graph().nodes_); }
  Index live_nodes() const { return graph().live_; }
  /// Bytes of the tape's pool.
  Index pool_bytes() const { return graph().pool_.bytes(); }
  /// Operation and scope of a value's node, for reports.
  std::string describe(const Var<S>& x) const;

 private:
  // Throws Error for a tape that has been moved from.
  Graph<S>& graph() const;

  std::shared_ptr<Graph<S>> graph_;
};

}  // namespace handgrad
