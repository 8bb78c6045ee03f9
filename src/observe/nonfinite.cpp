#include "handgrad/observe/nonfinite.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/math.h"

namespace handgrad {
namespace {

template <class S>
S element(const View<const S>& x, Index i) {
  const S* p = x.data;
  for (int axis = x.shape.rank() - 1; axis >= 0; --axis) {
    p += i % x.shape[axis] * x.strides[axis];
    i /= x.shape[axis];
  }
  return *p;
}

template <class S>
WitnessTensor<S> witness(std::string name, const View<const S>& x) {
  WitnessTensor<S> w{std::move(name), Tensor<S>(x.shape), HUGE_VAL, -HUGE_VAL, 0};
  for (Index i = 0; i < x.shape.size(); ++i) {
    const S value = element(x, i);
    w.values[i] = value;
    if (!is_finite(value)) {
      ++w.not_finite;
      continue;
    }
    w.least = std::min(w.least, static_cast<double>(value));
    w.largest = std::max(w.largest, static_cast<double>(value));
  }
  return w;
}

// Index of the first element for which `wrong` is true; -1 if there is none.
template <class S, class F>
Index find_element(const View<const S>& x, F wrong) {
  if (!x) return -1;
  for (Index i = 0; i < x.shape.size(); ++i) {
    if (wrong(element(x, i))) return i;
  }
  return -1;
}

}  // namespace

template <class S>
Index first_not_finite(View<const S> x) {
  return find_element(x, [](S v) { return !is_finite(v); });
}

template <class S>
std::string NonFiniteOrigin<S>::to_string() const {
  // The sign of a NaN has no meaning.
  const std::string seen = std::isnan(value) ? "nan" : fmt::format("{}", value);
  const std::string where = scope.empty() ? operation : scope + "/" + operation;
  std::string text =
      backward ? fmt::format("{}, backward, gradient of input {}, element {} is {}", where, input, element, seen)
               : fmt::format("{}, forward, element {} is {}", where, element, seen);
  for (const WitnessTensor<S>& w : witnesses) {
    text += fmt::format("; {} {} in [{:.4g}, {:.4g}]", w.name, w.values.shape().to_string(), w.least, w.largest);
    if (w.not_finite > 0) text += fmt::format(", {} not finite", w.not_finite);
  }
  return text;
}

template <class S>
void NonFiniteTracer<S>::record(Graph<S>& graph, int id, bool backward, int input, Index element, S value) {
  Node<S>& node = graph.node(id);
  NonFiniteOrigin<S> origin{node.operation, graph.scope_of(id),         backward, input,
                            element,        static_cast<double>(value), {}};
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    const NodePart& part = node.inputs[i];
    if (part.id < 0 || !graph.value(part.id)) continue;  // absent, or already released because nothing reads it
    origin.witnesses.push_back(witness(fmt::format("input {}", i), graph.value_of(part)));
  }
  if (backward) {
    origin.witnesses.push_back(witness<S>("gradient of the output", graph.gradient_of(node)));
  }
  origin_ = std::make_shared<const NonFiniteOrigin<S>>(std::move(origin));
}

template <class S>
void NonFiniteTracer<S>::after_forward(Graph<S>& graph, int id) {
  if (origin_) return;
  const Node<S>& node = graph.node(id);
  const View<const S> y{graph.value(id), node.shape, contiguous_strides(node.shape)};
  const bool minus_infinity_is_wrong = !node.may_hold_minus_infinity;
  const Index at = find_element(y, [=](S v) { return !is_finite(v) && (minus_infinity_is_wrong || !(v < S(0))); });
  if (at >= 0) record(graph, id, false, 0, at, y.data[at]);
}

template <class S>
void NonFiniteTracer<S>::after_backward(Graph<S>& graph, int id) {
  if (origin_) return;
  const Node<S>& node = graph.node(id);
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    if (!node.inputs[i].takes_gradient) continue;
    const View<const S> gradient = graph.gradient_of(node.inputs[i]);
    const Index at = first_not_finite(gradient);
    if (at < 0) continue;
    record(graph, id, true, static_cast<int>(i), at, element(gradient, at));
    return;
  }
}

template struct NonFiniteOrigin<float>;
template struct NonFiniteOrigin<double>;
template class NonFiniteTracer<float>;
template class NonFiniteTracer<double>;
template Index first_not_finite(View<const float>);
template Index first_not_finite(View<const double>);

}  // namespace handgrad
