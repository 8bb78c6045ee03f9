#include <limits>
#include <utility>

#include "handgrad/autograd/arena.h"
#include "handgrad/autograd/output.h"
#include "handgrad/autograd/pool.h"
#include "handgrad/autograd/tape.h"
#include "handgrad/ops/mul.h"
#include "handgrad/ops/relu.h"
#include "handgrad/ops/sum.h"
#include "handgrad/optim/optimizer.h"
#include "misuse/refusal.h"

namespace handgrad::misuse {
namespace {

const Covers covers{"autograd/arena.h", "autograd/graph.h", "autograd/output.h", "autograd/parameter_store.h",
                    "autograd/pool.h",  "autograd/tape.h",  "autograd/var.h"};

const Tensor<float>& values() {
  static const Tensor<float> x({2, 2}, {1, 2, 3, 4});
  return x;
}

TEST(Misuse, arena_and_pool) {
  Arena arena;
  EXPECT_REFUSED(RangeError, "arena: the alignment must be 1 or more, got 0", arena.allocate(8, 0));
  EXPECT_NE(arena.allocate(0, 1), nullptr);
  EXPECT_TRUE(arena.copy(std::span<const int>()).empty());
  Pool<float> pool;
  EXPECT_REFUSED(ResourceError, "memory: -1 elements", pool.acquire(-1));
  EXPECT_REFUSED(ResourceError, "memory:", pool.acquire(std::numeric_limits<Index>::max()));
  EXPECT_REFUSED(Error, "pool: a block of acquire() is needed", pool.release({}));
  EXPECT_EQ(pool.blocks_in_use(), 0);
}

TEST(Misuse, parameter_store_before_its_time) {
  ParameterStore<float> store;
  EXPECT_REFUSED(Error, "call allocate() before allocate_gradients()", store.allocate_gradients());
  EXPECT_REFUSED(RangeError, "parameter store: there are 0 parameters, got id 0", store.parameter(0));
  const ParameterId w = store.add("w", {2});
  EXPECT_REFUSED(Error, "parameter w: the name is taken", store.add("w", {3}));
  EXPECT_REFUSED(RangeError, "got id -1", store.parameter(-1));
  EXPECT_REFUSED(RangeError, "got id 1", store.parameter(1));
  EXPECT_REFUSED(RangeError, "got id 1", store.add_second_gradient(1));
  EXPECT_REFUSED(Error, "parameter w: its store has no memory yet; call allocate()", store.value(store.parameter(w)));
  EXPECT_REFUSED(Error, "call allocate()", store.gradient(store.parameter(w)));
  store.zero_gradients();
  store.finish_gradients();
  store.allocate();
  EXPECT_REFUSED(Error, "parameter w: its store has no gradients", store.gradient(store.parameter(w)));
  EXPECT_REFUSED(Error, "allocate() must be called once", store.allocate());
  EXPECT_REFUSED(Error, "parameter v: the store has been allocated", store.add("v", {2}));
  EXPECT_REFUSED(Error, "parameter far: it belongs to another store",
                 store.value({"far", {2}, ParameterRole::bias, 1000}));
  EXPECT_REFUSED(Error, "belongs to another store", store.value({"large", {1000}, ParameterRole::bias, 0}));
  EXPECT_REFUSED(Error, "belongs to another store", store.value({"negative", {1}, ParameterRole::bias, -5}));
  EXPECT_EQ(store.find(""), nullptr);
  store.add_second_gradient(w);
  store.finish_gradients();  // without gradients there is nothing to add
  EXPECT_REFUSED(ShapeError, "parameter m: a table or a matrix must have two axes or more, got (3)",
                 (ParameterStore<float>().add("m", {3}, ParameterRole::matrix)));
}

TEST(Misuse, parameter_store_that_is_empty_or_moved_from) {
  ParameterStore<float> empty;
  empty.allocate();
  EXPECT_REFUSED(Error, "parameter w: the store has been allocated", empty.add("w", {2}));
  ParameterStore<float> store;
  store.add("w", {2});
  store.allocate();
  store.allocate_gradients();
  ParameterStore<float> taken = std::move(store);
  EXPECT_EQ(store.flat_size(), 0);  // NOLINT: what was moved from is empty
  EXPECT_FALSE(store.allocated());
  EXPECT_FALSE(store.has_gradients());
  EXPECT_REFUSED(RangeError, "there are 0 parameters", store.parameter(0));
  EXPECT_REFUSED(Error, "call allocate()", store.value(taken.parameter(0)));
  Tape<float> tape;
  EXPECT_REFUSED(RangeError, "there are 0 parameters, got id 0", tape.parameter(store, 0));
  EXPECT_EQ(taken.value(taken.parameter(0)).shape, Shape{2});
}

// A forgotten finish_gradients() would change bits silently.
TEST(Misuse, unfinished_gradients) {
  ParameterStore<float> store;
  const ParameterId w = store.add("w", {1});
  store.allocate();
  store.allocate_gradients();
  store.add_second_gradient(w);
  AdamW<float> optimizer(store, {});
  Tape<float> tape;
  tape.backward(tape.parameter_second_use(store, w));
  const auto words = "parameter w: its second gradient has not been added; call finish_gradients()";
  EXPECT_REFUSED(Error, words, gradient_norm(store));
  EXPECT_REFUSED(Error, words, optimizer.step(store, 0.1, 1.0));
  store.finish_gradients();
  EXPECT_EQ(gradient_norm(store), 1.0);
  optimizer.step(store, 0.1, 1.0);
}

TEST(Misuse, tape_and_parameters) {
  ParameterStore<float> store;
  store.add("w", {1});
  Tape<float> tape;
  EXPECT_REFUSED(Error, "parameter w: its store has no memory yet; call allocate()", tape.parameter(store, 0));
  EXPECT_REFUSED(Error, "call allocate()", tape.parameter_second_use(store, 0));
  store.allocate();
  EXPECT_REFUSED(RangeError, "there are 1 parameters, got id 7", tape.parameter(store, 7));
  EXPECT_REFUSED(RangeError, "got id -1", tape.parameter_second_use(store, -1));
  const Var<float> w = tape.parameter(store, 0);
  EXPECT_REFUSED(Error, "allocate_gradients() was called before the forward pass", tape.backward(w));
  EXPECT_REFUSED(Error, "gradient: there is none", w.gradient());
}

TEST(Misuse, tape) {
  Tape<float> tape, other;
  EXPECT_REFUSED(ShapeError, "tensor: a tensor with elements", tape.constant({}));
  EXPECT_REFUSED(ShapeError, "tensor: a tensor with elements", tape.variable({}));
  EXPECT_REFUSED(Error, "borrow() needs a view with memory", tape.borrow({}));
  EXPECT_REFUSED(Error, "tape: complex values cannot be recorded", Tape<std::complex<double>>(true));
  const Var<float> x = tape.variable(values()), foreign = other.variable(values());
  EXPECT_REFUSED(ShapeError, "backward: a value of more than one element needs a seed, got (2, 2)", tape.backward(x));
  EXPECT_REFUSED(ShapeError, "the seed must have the shape of the value", tape.backward(x, Tensor<float>(Shape{4})));
  const Var<float> loss = sum(x);
  EXPECT_REFUSED(ShapeError, "tensor: a tensor with elements", tape.backward(loss, Tensor<float>{}));
  EXPECT_REFUSED(Error, "backward: the operands belong to different tapes", tape.backward(sum(foreign)));
  EXPECT_REFUSED(Error, "backward: no value with a gradient", tape.backward(Var<float>()));
  EXPECT_REFUSED(Error, "mul: the operands belong to different tapes", mul(x, foreign));
  EXPECT_EQ(tape.describe(foreign), "variable");
  EXPECT_REFUSED(Error, "value: an empty handle was used", tape.describe({}));
  tape.backward(loss);
  EXPECT_REFUSED(Error, "a graph can be used once", tape.backward(loss));
  Tape<float> silent(false);
  EXPECT_REFUSED(Error, "backward: no value with a gradient", silent.backward(sum(silent.variable(values()))));
}

TEST(Misuse, tape_that_was_moved_from) {
  Tape<float> tape;
  Tape<float> taken = std::move(tape);
  const auto moved = "tape: it has been moved from";
  GraphObserver<float> observer;
  ParameterStore<float> store;
  store.add("w", {1});
  store.allocate();
  EXPECT_REFUSED(Error, moved, tape.recording());  // NOLINT: that is the misuse
  EXPECT_REFUSED(Error, moved, tape.constant(values()));
  EXPECT_REFUSED(Error, moved, tape.variable(values()));
  EXPECT_REFUSED(Error, moved, tape.borrow(values().view()));
  EXPECT_REFUSED(Error, moved, tape.parameter(store, 0));
  EXPECT_REFUSED(Error, moved, tape.backward(sum(taken.variable(values()))));
  EXPECT_REFUSED(Error, moved, tape.reset());
  EXPECT_REFUSED(Error, moved, tape.observe(observer));
  EXPECT_REFUSED(Error, moved, tape.poison_memory());
  EXPECT_REFUSED(Error, moved, tape.nodes() + tape.live_nodes() + tape.pool_bytes());
  EXPECT_REFUSED(Error, moved, Tape<float>::Scope(tape, "scope"));
  EXPECT_REFUSED(Error, moved, Tape<float>::Watch(tape, observer));
  tape.unobserve(observer);
  tape = std::move(taken);
  EXPECT_EQ(tape.nodes(), 2);
}

TEST(Misuse, var) {
  Tape<float> tape;
  const Var<float> empty, x = tape.variable(values());
  const auto unused = "value: an empty handle was used";
  EXPECT_REFUSED(Error, unused, empty.view());
  EXPECT_REFUSED(Error, unused, empty.item());
  EXPECT_REFUSED(Error, unused, empty.reshape({1}));
  EXPECT_REFUSED(Error, unused, empty.keep());
  EXPECT_REFUSED(Error, unused, empty.gradient());
  EXPECT_REFUSED(ShapeError, "there is no axis 0", empty.slice(0, 0, 1));
  EXPECT_REFUSED(ShapeError, "there is no axis", empty.transpose(0, 1));
  EXPECT_REFUSED(ShapeError, "there is no axis", empty.extent(0));
  EXPECT_FALSE(empty.detach());
  EXPECT_REFUSED(ShapeError, "item: the value must have one element, got (2, 2)", x.item());
  EXPECT_REFUSED(RangeError, "slice: 1 or more elements inside axis 0 of (2, 2) are needed, got 2 from 1 on",
                 x.slice(0, 1, 2));
  EXPECT_REFUSED(RangeError, "got 1 from -1 on", x.slice(0, -1, 1));
  EXPECT_REFUSED(RangeError, "are needed, got 0 from 0 on", x.slice(0, 0, 0));
  EXPECT_REFUSED(ShapeError, "there is no axis 2", x.slice(2, 0, 1));
  EXPECT_REFUSED(ShapeError, "split: axis -1 of (2, 2) cannot be read as (3, 0)", x.split_last(3));
  EXPECT_REFUSED(ShapeError, "split:", x.split_last(0));
  EXPECT_REFUSED(ShapeError, "split:", x.split_axis(0, -1, -2));
  EXPECT_REFUSED(ShapeError, "reshape: (2, 2) cannot be read as (3)", x.reshape({3}));
  EXPECT_REFUSED(ShapeError, "reshape:", x.transpose(0, 1).reshape({4}));
  EXPECT_REFUSED(ShapeError, "relu: rows of adjacent elements are needed, got a transposed or sliced view (2, 2)",
                 relu(x.transpose(0, 1)));
  EXPECT_REFUSED(Error, "gradient: there is none", x.gradient());
  EXPECT_REFUSED(Error, "relu: operand 0 is an empty handle", relu(empty));
  tape.reset();
  EXPECT_REFUSED(Error, "value: its tape has been reset", x.view());
  EXPECT_REFUSED(Error, "value: its tape has been reset", relu(x));
}

// A view does not detect that its tape was reset. With poison a read gives NaN, not numbers of another value.
TEST(Misuse, a_view_that_outlives_its_value_reads_poison) {
  Tape<float> tape;
  tape.poison_memory();
  const View<const float> stale = tape.variable(values()).view();
  tape.reset();
  EXPECT_NE(stale.data[0], stale.data[0]);
}

TEST(Misuse, graph) {
  Tape<float> tape;
  const Var<float> x = tape.variable(values());
  Graph<float>& graph = x.graph();
  EXPECT_REFUSED(RangeError, "graph: there are 1 nodes, got node 1", graph.node(1));
  EXPECT_REFUSED(RangeError, "got node -1", graph.value(-1));
  EXPECT_REFUSED(RangeError, "got node 9", graph.scope_of(9));
  EXPECT_REFUSED(RangeError, "got node 9", graph.value_of(NodePart{9, false, 0, {}, {}}));
  EXPECT_REFUSED(RangeError, "got node 9", graph.gradient_of(NodePart{9, true, 0, {}, {}}));
  EXPECT_REFUSED(ResourceError, "memory: -1 elements", graph.scratch(x.id(), -1));
  EXPECT_REFUSED(Error, "own: operand 0 is an empty handle", output("own", Shape{1}, Var<float>()));
  Tape<float> other;
  EXPECT_REFUSED(Error, "own: the operands belong to different tapes",
                 output("own", Shape{1}, x, other.variable(values())));
}

}  // namespace
}  // namespace handgrad::misuse
