#pragma once

#include <array>
#include <tuple>
#include <utility>

#include "handgrad/autograd/graph.h"

// How an operation is recorded on a tape:
//
//   Output y = output("softmax", x.shape(), x);                 makes a node with its inputs
//   softmax_forward<S>(x.rows(), y.rows());
//   return y.saves(y.var()).on_backward([](const auto& saved, auto dy, auto dx) {
//     const auto& [y_saved] = saved;                                  the arguments of saves()
//     softmax_backward<S>(y_saved.rows(), dy.rows(), dx.rows());      empty view: no gradient needed
//   });
//
// The closure is generic, so that no backward code is compiled for complex scalars, which are never recorded.

namespace handgrad {

/// Memory of the tape's pool that is held until the backward pass of the node, for example for row statistics.
template <class S>
struct Scratch {
  S* data = nullptr;
  Index size = 0;

  operator std::span<S>() const { return {data, static_cast<std::size_t>(size)}; }
  operator std::span<const S>() const { return {data, static_cast<std::size_t>(size)}; }
};

namespace detail {

// One argument of saves(); load() returns the value that the closure receives.
template <class S, class T>
struct Saved {
  T value;
  Saved(Graph<S>&, const T& saved) : value(saved) { static_assert(std::is_trivially_copyable_v<T>); }
  const T& load(Graph<S>&) const { return value; }
  int id() const { return -1; }
};
template <class S>
struct Saved<S, Var<S>> {
  NodePart part;
  Saved(Graph<S>& graph, const Var<S>& x) : part(x ? graph.part(x, "save") : NodePart{}) {}
  View<const S> load(Graph<S>& graph) const { return part.id < 0 ? View<const S>{} : graph.value_of(part); }
  int id() const { return part.id; }
};

}  // namespace detail

template <class S, std::size_t N, class... Ts>
class Saver;

/// A node under construction. The forward pass writes its memory; saves(...).on_backward(...) completes it.
template <class S, std::size_t N>
class Output {
 public:
  explicit Output(Var<S> y) : y_(std::move(y)) {}

  const Var<S>& var() const { return y_; }
  S* data() const { return y_.graph().value(y_.id()); }
  View<S> view() const { return {data(), y_.shape(), y_.strides()}; }
  Rows<S> rows() const { return view().rows(y_.graph().node(y_.id()).operation); }
  Heads<S> heads() const { return view().heads(); }
  Scratch<S> scratch(Index size) const { return {y_.graph().scratch(y_.id(), size), size}; }
  /// A copy of caller-owned values (tokens, positions) that the backward pass reads.
  template <class T>
  std::span<const T> copy(std::span<const T> values) const {
    return y_.graph().recording() ? std::span<const T>(y_.graph().arena().copy(values)) : values;
  }

  /// Records the options of the operation, for observers (Graph::attribute).
  template <class T>
  void records(const T& options) const {
    static_assert(std::is_trivially_copyable_v<T>);
    Node<S>& node = y_.graph().node(y_.id());
    node.attribute = y_.graph().arena().make(options);
    node.attribute_type = &typeid(T);
  }
  /// Declares that elements may be -infinity by design, as masked scores before a softmax.
  void may_hold_minus_infinity() const { y_.graph().node(y_.id()).may_hold_minus_infinity = true; }

  template <class... Ts>
  Saver<S, N, Ts...> saves(const Ts&... things) const {
    return Saver<S, N, Ts...>(y_, things...);
  }

 private:
  Var<S> y_;
};

template <class S, std::size_t N, class... Ts>
class Saver {
 public:
  explicit Saver(Var<S> y, const Ts&... things)
      : y_(std::move(y)), saved_(detail::Saved<S, Ts>(y_.graph(), things)...) {}

  template <class F>
  Var<S> on_backward(F backward) && {
    Graph<S>& graph = y_.graph();
    if constexpr (!is_complex_v<S>) {
      if (graph.recording() && graph.node(y_.id()).needs_gradient) {
        static_assert(sizeof(F) <= 128, "a closure may have at most 128 bytes; pass larger values to saves()");
        static_assert(std::is_trivially_destructible_v<F>);
        using Pack = std::pair<F, std::tuple<detail::Saved<S, Ts>...>>;
        void* memory = graph.arena().allocate(sizeof(Pack), alignof(Pack));
        new (memory) Pack(backward, saved_);
        graph.finish(y_.id(), saved_ids(graph.arena()), memory, &run<Pack>);
        return std::move(y_);
      }
    }
    graph.finish(y_.id(), {}, nullptr, nullptr);
    return std::move(y_);
  }

 private:
  std::span<const int> saved_ids(Arena& arena) const {
    return std::apply(
        [&](const auto&... s) {
          const std::array<int, sizeof...(Ts) + 1> ids{s.id()..., -1};
          return std::span<const int>(arena.copy(std::span<const int>(ids)));
        },
        saved_);
  }

  template <class Pack>
  static void run(Graph<S>& graph, Node<S>& node) {
    const Pack& pack = *static_cast<const Pack*>(node.closure);
    const auto saved = std::apply([&](const auto&... s) { return std::tuple(s.load(graph)...); }, pack.second);
    std::array<View<S>, N> gradients;
    for (std::size_t i = 0; i < N; ++i) gradients[i] = graph.gradient_of(node.inputs[i]);
    const View<S> dy = graph.gradient_of(node);
    [&]<std::size_t... I>(std::index_sequence<I...>) { pack.first(saved, View<const S>(dy), gradients[I]...); }
    (std::make_index_sequence<N>{});
  }

  Var<S> y_;
  std::tuple<detail::Saved<S, Ts>...> saved_;
};

namespace detail {
[[noreturn]] void refuse_no_input(const char* operation);
}

/// A new node for `operation` with these inputs; an absent optional input is an empty Var. Throws Error for a Var from
/// before reset(), or if the inputs belong to different tapes.
template <class S, class... Inputs>
Output<S, 1 + sizeof...(Inputs)> output(const char* operation, const Shape& shape, const Var<S>& first,
                                        const Inputs&... others) {
  if (!first) detail::refuse_no_input(operation);
  Graph<S>& graph = first.graph();
  const std::array<NodePart, 1 + sizeof...(Inputs)> inputs{graph.part(first, operation),
                                                           graph.part(others, operation)...};
  return Output<S, 1 + sizeof...(Inputs)>(graph.add_node(operation, shape, inputs));
}

}  // namespace handgrad
