#pragma once

#include "docs/examples.h"
#include "handgrad/ops/ops.h"

// Runs a worked example of docs/gradients, in double.

namespace handgrad::test {

using Value = Var<double>;
struct Named {
  std::string name;
  Shape shape{};  // rank 0: the shape as written
};

// Runs f on the named operands; compares y and the operands' gradients, for an upstream gradient dy (1 if there is
// none).
template <class F>
void run(Example& e, const std::vector<Named>& operands, F f) {
  Tape<double> tape;
  std::vector<Value> x;
  for (const Named& o : operands) {
    x.push_back(tape.variable(o.shape.rank() == 0 ? e.tensor(o.name) : e.tensor(o.name, o.shape)));
  }
  const Value y = f(x).keep();
  Tensor<double> dy(y.shape());
  dy.fill(1.0);
  if (e.has("dy")) dy = e.tensor("dy", y.shape());
  tape.backward(y, dy);
  e.expect("y", elements(y));
  for (std::size_t i = 0; i < operands.size(); ++i) e.expect("d" + operands[i].name, gradient(x[i]));
}

template <class F>
Runner unary(F f) {
  return [f](Example& e) { run(e, {{"x"}}, [f](auto x) { return f(x[0]); }); };
}
template <class F>
Runner binary(const char* first, const char* second, F f) {
  return [=](Example& e) { run(e, {{first}, {second}}, [f](auto x) { return f(x[0], x[1]); }); };
}

/// Examples of attention, rotary positions and packed heads.
void run_explicit_attention(Example& e);
void tiled_attention(Example& e);
void running_maximum(Example& e);
Runner rope_runner(RopePairing pairing);
void rope_difference(Example& e);
void rope_causal(Example& e);
void packing(Example& e);

}  // namespace handgrad::test
