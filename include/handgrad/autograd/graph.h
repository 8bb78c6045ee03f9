#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <typeinfo>
#include <vector>

#include "handgrad/autograd/arena.h"
#include "handgrad/autograd/parameter_store.h"
#include "handgrad/autograd/pool.h"
#include "handgrad/autograd/var.h"

namespace handgrad {

namespace detail {
[[noreturn]] void refuse_node(int id, std::size_t count);
}

/// An operand of an operation: a node, and the part of its value that was read.
struct NodePart {
  int id = -1;  ///< -1: no operand.
  bool takes_gradient = false;
  Index offset = 0;
  Shape shape;
  Strides strides{};
};

template <class S>
struct Node {
  const char* operation = "";
  int scope = 0;
  Shape shape;
  typename Pool<S>::Block value, gradient;  // capacity 0: memory that the graph does not own
  bool needs_gradient = false;
  bool kept = false;
  bool may_hold_minus_infinity = false;  // intended: masked scores before a softmax
  int handles = 0;                       // Vars of this node
  int readers = 0;                       // nodes whose backward pass reads this value
  std::span<const NodePart> inputs;
  std::span<const int> saved;
  const std::type_info* attribute_type = nullptr;
  const void* attribute = nullptr;
  void* closure = nullptr;
  void (*run)(Graph<S>& graph, Node& node) = nullptr;
  const Index* version = nullptr;  // of the parameter store that the value belongs to
  Index version_read = 0;
};

template <class S>
class Graph;

/// Receives every operation of a tape, directly after its forward or backward pass, for traces and statistics.
/// Observers must not keep pointers to the values that they read.
template <class S>
class GraphObserver {
 public:
  virtual ~GraphObserver() = default;
  /// The value of node `id` is complete, and the values of its inputs are still held.
  virtual void after_forward(Graph<S>&, int /*id*/) {}
  /// The backward pass of node `id` has added to the gradients of its inputs; its own gradient is still held.
  virtual void after_backward(Graph<S>&, int /*id*/) {}
};

/// The nodes of a Tape and its Vars, their memory, and the backward pass over them. It knows order and storage, but no
/// calculus. The tape and every handle share its ownership.
template <class S>
class Graph : public std::enable_shared_from_this<Graph<S>> {
 public:
  // For operations (see output.h).
  Var<S> add_node(const char* operation, const Shape& shape, std::span<const NodePart> inputs);
  NodePart part(const Var<S>& x, const char* operation) const;
  /// Throws RangeError if there is no such node.
  Node<S>& node(int id) {
    if (id < 0 || id >= std::ssize(nodes_)) detail::refuse_node(id, nodes_.size());
    return nodes_[id];
  }
  S* value(int id) { return node(id).value.data; }
  S* scratch(int id, Index size);
  void finish(int id, std::span<const int> saved, void* closure, void (*run)(Graph&, Node<S>&));
  View<S> gradient_of(const NodePart& part);
  View<S> gradient_of(Node<S>& node);
  View<const S> value_of(const NodePart& part) { return {value(part.id) + part.offset, part.shape, part.strides}; }
  /// The options that the operation of a node was called with, if it recorded options of type T; else null.
  template <class T>
  const T* attribute(int id) {
    const Node<S>& n = node(id);
    return n.attribute && *n.attribute_type == typeid(T) ? static_cast<const T*>(n.attribute) : nullptr;
  }
  /// The path of the scopes in which a node was made: "blocks/3/attention".
  const std::string& scope_of(int id) { return scopes_[node(id).scope]; }
  Arena& arena() { return arena_; }
  bool recording() const { return recording_; }

  // For NodeHandle.
  void pin(int id, Index generation);
  void unpin(int id, Index generation) noexcept;
  void check(Index generation, const char* what) const;

 private:
  friend class Tape<S>;
  explicit Graph(bool recording) : recording_(recording) {}
  void backward(const Var<S>& y, View<const S> seed);
  void check_versions() const;
  void finish_backward(int id);
  void release_value_if_unused(int id) noexcept;
  void release_scratch(int id) noexcept;
  void release(typename Pool<S>::Block& block) noexcept;
  void reset() noexcept;
  int intern(std::string_view name);

  struct Scratch {
    int node;
    typename Pool<S>::Block block;
  };

  Pool<S> pool_;
  Arena arena_;
  std::vector<Node<S>> nodes_;
  std::vector<int> free_nodes_;  // to be reused; only if recording is off
  std::vector<Scratch> scratch_;
  std::vector<std::string> scopes_{""};
  std::map<std::pair<int, std::string>, int, std::less<>> scope_ids_;
  std::vector<GraphObserver<S>*> observers_;
  int scope_ = 0;
  Index generation_ = 1;
  Index live_ = 0;
  bool recording_;
  bool consumed_ = false;
  bool closed_ = false;  // the tape has been destroyed
};

}  // namespace handgrad
