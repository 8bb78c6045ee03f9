#include "handgrad/verify/operand_watch.h"

#include <fmt/format.h>

#include <cstring>
#include <span>
#include <string_view>

#include "handgrad/core/errors.h"
#include "handgrad/files/hash.h"

namespace handgrad::verify {

template <class S>
OperandWatch<S>::OperandWatch(const ParameterStore<S>& store) : store_(store) {
  if (!store.allocated()) throw Error("operand watch: a store with memory is needed; call allocate() first");
  values_.assign(store.values(), store.values() + store.flat_size());
}

// True if the value of a node has changed since the last hash.
template <class S>
bool OperandWatch<S>::changed(Graph<S>& graph, int id) {
  const Node<S>& node = graph.node(id);
  // The memory of a borrowed view may have gaps that others write to. A null pointer is a released value.
  if (!node.value.data || std::string_view(node.operation) == "borrowed") return false;
  const std::span<const S> values(node.value.data, node.shape.size());
  const std::uint64_t now = files::hash64(std::as_bytes(values));
  const auto [known, first] = hashes_.try_emplace(id, now);
  if (first || known->second == now) return false;
  known->second = now;
  return true;
}

template <class S>
void OperandWatch<S>::compare_values(Graph<S>& graph, int id, const char* pass) {
  const Node<S>& node = graph.node(id);
  const std::string& scope = graph.scope_of(id);
  const std::string name = scope.empty() ? node.operation : scope + "/" + node.operation;
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    if (node.inputs[i].id >= 0 && changed(graph, node.inputs[i].id)) {
      found_.push_back(fmt::format("{}, {}: changed its operand {}", name, pass, i));
    }
  }
  if (changed(graph, id)) found_.push_back(fmt::format("{}, {}: changed its own result", name, pass));
}

template <class S>
void OperandWatch<S>::after_forward(Graph<S>& graph, int id) {
  compare_values(graph, id, "forward");
}

template <class S>
void OperandWatch<S>::after_backward(Graph<S>& graph, int id) {
  compare_values(graph, id, "backward");
}

template <class S>
std::vector<std::string> OperandWatch<S>::violations() const {
  std::vector<std::string> all = found_;
  for (const Parameter& p : store_.parameters()) {
    const S *before = values_.data() + p.offset, *now = store_.values() + p.offset;
    if (std::memcmp(before, now, p.shape.size() * sizeof(S)) != 0) {
      all.push_back(fmt::format("{}: the values of the parameter changed", p.name));
    }
  }
  return all;
}

template class OperandWatch<float>;
template class OperandWatch<double>;

}  // namespace handgrad::verify
