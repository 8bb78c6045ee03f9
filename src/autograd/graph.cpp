#include "handgrad/autograd/graph.h"

#include <fmt/format.h>

#include <complex>

#include "handgrad/core/errors.h"
#include "handgrad/core/parallel.h"

namespace handgrad {

namespace detail {
void refuse_node(int id, std::size_t count) {
  throw RangeError(fmt::format("graph: there are {} nodes, got node {}", count, id));
}
}  // namespace detail

template <class S>
void Graph<S>::pin(int id, Index generation) {
  if (generation == generation_) ++node(id).handles;
}

template <class S>
void Graph<S>::unpin(int id, Index generation) noexcept {
  if (generation == generation_ && --node(id).handles == 0) release_value_if_unused(id);
}

template <class S>
void Graph<S>::check(Index generation, const char* what) const {
  if (closed_) throw Error(fmt::format("{}: its tape is gone", what));
  if (generation != generation_) throw Error(fmt::format("{}: its tape has been reset since it was made", what));
}

template <class S>
NodePart Graph<S>::part(const Var<S>& x, const char* operation) const {
  if (!x) return {};
  if (&x.graph() != this) throw Error(fmt::format("{}: the operands belong to different tapes", operation));
  return {x.id(), nodes_[x.id()].needs_gradient && !x.detached(), x.offset(), x.shape(), x.strides()};
}

template <class S>
Var<S> Graph<S>::add_node(const char* operation, const Shape& shape, std::span<const NodePart> inputs) {
  Node<S> made;
  made.operation = operation;
  made.scope = scope_;
  made.shape = shape;
  made.value = pool_.acquire(shape.size());
  ++live_;
  if (recording_) {
    made.inputs = arena_.copy(inputs);
    for (const NodePart& input : inputs) made.needs_gradient |= input.takes_gradient;
  }
  int id = static_cast<int>(nodes_.size());
  if (!free_nodes_.empty()) {
    id = free_nodes_.back();
    free_nodes_.pop_back();
    node(id) = made;
  } else {
    nodes_.push_back(made);
  }
  return Var<S>(NodeHandle<S>(this->shared_from_this(), id, generation_), shape);
}

template <class S>
S* Graph<S>::scratch(int id, Index size) {
  scratch_.push_back({id, pool_.acquire(size)});
  return scratch_.back().block.data;
}

template <class S>
void Graph<S>::finish(int id, std::span<const int> saved, void* closure, void (*run)(Graph&, Node<S>&)) {
  Node<S>& made = node(id);
  made.saved = saved;
  made.closure = closure;
  made.run = run;
  if (!run) release_scratch(id);
  for (const int read : saved) {
    if (read >= 0) ++node(read).readers;
  }
  for (GraphObserver<S>* observer : observers_) observer->after_forward(*this, id);
}

template <class S>
View<S> Graph<S>::gradient_of(Node<S>& target) {
  if (!target.gradient.data) {
    target.gradient = pool_.acquire(target.shape.size());
    S* data = target.gradient.data;
    parallel_ranges(target.shape.size(), elementwise_tile,
                    [data](Index begin, Index end) { std::fill(data + begin, data + end, S{}); });
  }
  return {target.gradient.data, target.shape, contiguous_strides(target.shape)};
}

template <class S>
View<S> Graph<S>::gradient_of(const NodePart& part) {
  if (!part.takes_gradient) return {};
  return {gradient_of(node(part.id)).data + part.offset, part.shape, part.strides};
}

template <class S>
void Graph<S>::check_versions() const {
  for (const Node<S>& n : nodes_) {
    if (n.version && *n.version != n.version_read) {
      throw Error("backward: a parameter has changed since the forward pass read it");
    }
  }
}

template <class S>
void Graph<S>::backward(const Var<S>& y, View<const S> seed) {
  if (consumed_) throw Error("backward: a graph can be used once; call reset() to record a new one");
  if (!part(y, "backward").takes_gradient) {
    throw Error(
        "backward: no value with a gradient leads to this value; parameters have gradients if "
        "allocate_gradients() was called before the forward pass");
  }
  if (!y.view().is_contiguous()) throw ShapeError("backward: the value must be contiguous");
  check_versions();
  consumed_ = true;
  S* root = gradient_of(node(y.id())).data + y.offset();
  for (Index i = 0; i < y.size(); ++i) root[i] += seed.data[i];
  for (int id = static_cast<int>(nodes_.size()) - 1; id >= 0; --id) {
    Node<S>& n = node(id);
    if (!n.run) continue;
    if (n.gradient.data) {
      n.run(*this, n);
      for (GraphObserver<S>* observer : observers_) observer->after_backward(*this, id);
    }
    finish_backward(id);
  }
}

template <class S>
void Graph<S>::finish_backward(int id) {
  Node<S>& n = node(id);
  n.run = nullptr;
  for (const int read : n.saved) {
    if (read < 0) continue;
    --node(read).readers;
    release_value_if_unused(read);
  }
  release_scratch(id);
  if (!n.kept) release(n.gradient);
}

template <class S>
void Graph<S>::release(typename Pool<S>::Block& block) noexcept {
  if (block.capacity > 0) pool_.release(block);
  block = {};
}

template <class S>
void Graph<S>::release_scratch(int id) noexcept {
  // Nodes are completed in the order of their creation, and the backward pass visits them in the opposite order.
  while (!scratch_.empty() && scratch_.back().node == id) {
    release(scratch_.back().block);
    scratch_.pop_back();
  }
}

template <class S>
void Graph<S>::release_value_if_unused(int id) noexcept {
  Node<S>& n = node(id);
  if (n.handles > 0 || n.readers > 0 || n.kept) return;
  if (n.value.data) --live_;
  release(n.value);
  if (!recording_) {
    release_scratch(id);
    free_nodes_.push_back(id);
  }
}

template <class S>
void Graph<S>::reset() noexcept {
  for (Node<S>& n : nodes_) {
    release(n.value);
    release(n.gradient);
  }
  for (Scratch& s : scratch_) release(s.block);
  nodes_.clear();
  free_nodes_.clear();
  scratch_.clear();
  arena_.reset();
  ++generation_;
  live_ = 0;
  consumed_ = false;
}

template <class S>
int Graph<S>::intern(std::string_view name) {
  const auto key = std::pair<int, std::string>(scope_, name);
  const auto found = scope_ids_.find(key);
  if (found != scope_ids_.end()) return found->second;
  const std::string& outer = scopes_[scope_];
  scopes_.push_back(outer.empty() ? std::string(name) : outer + "/" + std::string(name));
  const int id = static_cast<int>(scopes_.size()) - 1;
  scope_ids_.emplace(key, id);
  return id;
}

template class Graph<float>;
template class Graph<double>;
template class Graph<std::complex<double>>;

}  // namespace handgrad
