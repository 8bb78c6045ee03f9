#include "handgrad/autograd/tape.h"

#include <fmt/format.h>

#include <algorithm>
#include <complex>

#include "handgrad/core/errors.h"

namespace handgrad {

template <class S>
Tape<S>::Tape(bool recording) : graph_(new Graph<S>(recording)) {
  if (is_complex_v<S> && recording) {
    throw Error("tape: complex values cannot be recorded; their forward passes are for complex-step derivatives");
  }
}

template <class S>
Tape<S>::~Tape() {
  if (!graph_) return;
  graph_->reset();
  graph_->closed_ = true;
}

template <class S>
Graph<S>& Tape<S>::graph() const {
  if (!graph_) throw Error("tape: it has been moved from");
  return *graph_;
}

template <class S>
Var<S> Tape<S>::constant(const Tensor<S>& x) {
  const View<const S> values = x.view();
  Var<S> leaf = graph().add_node("constant", x.shape(), {});
  std::copy(values.data, values.data + x.size(), graph_->value(leaf.id()));
  return leaf;
}

template <class S>
Var<S> Tape<S>::variable(const Tensor<S>& x) {
  Var<S> leaf = constant(x);
  Node<S>& node = graph_->node(leaf.id());
  node.operation = "variable";
  node.needs_gradient = recording();
  return leaf;
}

template <class S>
Var<S> Tape<S>::borrow(View<const S> x) {
  if (!x) throw Error("tape: borrow() needs a view with memory, got an empty one");
  Var<S> leaf = graph().add_node("borrowed", Shape{}, {});
  Node<S>& node = graph_->node(leaf.id());
  graph_->release(node.value);
  node.value = {const_cast<S*>(x.data), 0};
  node.shape = x.shape;
  leaf.shape_ = x.shape;
  leaf.strides_ = x.strides;
  return leaf;
}

template <class S>
Var<S> Tape<S>::parameter(const ParameterStore<S>& store, ParameterId id) {
  const Parameter& p = store.parameter(id);
  Var<S> leaf = borrow(store.value(p));
  Node<S>& node = graph_->node(leaf.id());
  node.operation = "parameter";
  if (recording() && store.has_gradients()) {
    node.gradient = {store.gradient(p).data, 0};
    node.needs_gradient = true;
    node.version = &store.version();
    node.version_read = store.version();
  }
  return leaf;
}

template <class S>
Var<S> Tape<S>::parameter_second_use(const ParameterStore<S>& store, ParameterId id) {
  Var<S> leaf = parameter(store, id);
  Node<S>& node = graph_->node(leaf.id());
  if (node.needs_gradient && store.second_gradient(id)) {
    node.gradient = {store.second_gradient(id), 0};
    store.unfinished_ = true;
  }
  return leaf;
}

template <class S>
void Tape<S>::backward(const Var<S>& y) {
  if (y.size() != 1) {
    throw ShapeError(
        fmt::format("backward: a value of more than one element needs a seed, got {}", y.shape().to_string()));
  }
  const S one(1);
  graph().backward(y, View<const S>{&one, Shape{}, {}});
}

template <class S>
void Tape<S>::backward(const Var<S>& y, const Tensor<S>& seed) {
  if (seed.shape() != y.shape()) {
    throw ShapeError(fmt::format("backward: the seed must have the shape of the value, got {} and {}",
                                 seed.shape().to_string(), y.shape().to_string()));
  }
  graph().backward(y, seed.view());
}

template <class S>
std::string Tape<S>::describe(const Var<S>& x) const {
  const Node<S>& node = x.graph().node(x.id());
  const std::string& scope = x.graph().scope_of(x.id());
  return scope.empty() ? node.operation : scope + "/" + node.operation;
}

template class Tape<float>;
template class Tape<double>;
template class Tape<std::complex<double>>;

}  // namespace handgrad
