#include "handgrad/observe/nonfinite.h"

#include <fmt/format.h>

#include <cstring>
#include <limits>

#include "core/math.h"

namespace handgrad {
namespace {

const float& element(const View<const float>& x, Index i) {
  const float* p = x.data;
  for (int axis = x.shape.rank() - 1; axis >= 0; --axis) {
    p += i % x.shape[axis] * x.strides[static_cast<std::size_t>(axis)];
    i /= x.shape[axis];
  }
  return *p;
}

WitnessTensor witness(std::string name, const View<const float>& x) {
  WitnessTensor w{std::move(name), Tensor<float>(x.shape), HUGE_VAL, -HUGE_VAL, 0};
  for (Index i = 0; i < x.shape.size(); ++i) {
    const float value = element(x, i);
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

template <class Is>
Index first_of(const View<const float>& x, Is is) {
  if (!x) return -1;
  for (Index i = 0; i < x.shape.size(); ++i) {
    if (is(element(x, i))) return i;
  }
  return -1;
}

}  // namespace

Index first_not_finite(View<const float> x) {
  return first_of(x, [](float v) { return !is_finite(v); });
}

std::string NonFiniteOrigin::to_string() const {
  // The sign of a NaN means nothing.
  const std::string seen = std::isnan(value) ? "nan" : fmt::format("{}", value);
  const std::string where = scope.empty() ? operation : scope + "/" + operation;
  std::string text =
      backward ? fmt::format("{}, backward, gradient of input {}, element {} is {}", where, input, element, seen)
               : fmt::format("{}, forward, element {} is {}", where, element, seen);
  for (const WitnessTensor& w : witnesses) {
    text += fmt::format("; {} {} in [{:.4g}, {:.4g}]", w.name, w.values.shape().to_string(), w.least, w.largest);
    if (w.not_finite > 0) text += fmt::format(", {} not finite", w.not_finite);
  }
  return text;
}

void NonFiniteTracer::record(Graph<float>& graph, int id, bool backward, int input, Index element, double value) {
  Node<float>& node = graph.node(id);
  NonFiniteOrigin origin{node.operation, graph.scope_of(id), backward, input, element, value, {}};
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    const NodePart& part = node.inputs[i];
    if (part.id < 0 || !graph.value(part.id)) continue;  // absent, or given back already since nothing needs it
    origin.witnesses.push_back(witness(fmt::format("input {}", i), graph.value_of(part)));
  }
  if (backward) origin.witnesses.push_back(witness("gradient of the output", graph.gradient_of(node)));
  origin_ = std::make_shared<const NonFiniteOrigin>(std::move(origin));
}

void NonFiniteTracer::after_forward(Graph<float>& graph, int id) {
  if (origin_) return;
  const Node<float>& node = graph.node(id);
  const View<const float> y{graph.value(id), node.shape, contiguous_strides(node.shape)};
  // -infinity is what hides a score: it is masked_fill's to make, and softmax's to take.
  const bool hides = std::strcmp(node.operation, "masked_fill") == 0;
  const Index at = hides ? first_of(y, [](float v) { return !is_finite(v) && !(v < 0.0f); }) : first_not_finite(y);
  if (at >= 0) record(graph, id, false, 0, at, y.data[at]);
}

void NonFiniteTracer::after_backward(Graph<float>& graph, int id) {
  if (origin_) return;
  const Node<float>& node = graph.node(id);
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    if (!node.inputs[i].takes_gradient) continue;
    const View<const float> gradient = graph.gradient_of(node.inputs[i]);
    const Index at = first_not_finite(gradient);
    if (at < 0) continue;
    record(graph, id, true, static_cast<int>(i), at, element(gradient, at));
    return;
  }
}

}  // namespace handgrad
