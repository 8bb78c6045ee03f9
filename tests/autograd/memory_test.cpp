#include <unistd.h>

#include <fstream>

#include "handgrad/core/buffer.h"
#include "handgrad/core/parallel.h"
#include "handgrad/ops/ops.h"
#include "support/values.h"

// The values that a tape holds, their lifetimes, and its allocations.

namespace handgrad::test {
namespace {

Tensor<float> ones(const Shape& shape) {
  Tensor<float> x(shape);
  x.fill(1.0f);
  return x;
}

// The operations of a small model, with both forms of attention.
float small_step(Tape<float>& tape, const ParameterStore<float>& store) {
  static const std::vector<TokenId> tokens{0, 3, 1, 2, 4, 4}, targets{3, 1, 2, 4, 4, -100};
  const auto table = tape.parameter(store, 0);
  auto x = embedding(table, std::span<const TokenId>(tokens), Shape{2, 3});
  const auto qkv = linear(rms_norm(x, tape.parameter(store, 1)), tape.parameter(store, 2), {});
  const auto heads = [&](Index i) { return qkv.slice(2, 8 * i, 8).split_last(2); };
  auto tiled = causal_attention(heads(0), heads(1), heads(2)).reshape(Shape{2, 3, 8});
  auto explicitly =
      scaled_dot_product_attention(heads(0).transpose(1, 2), heads(1).transpose(1, 2), heads(2).transpose(1, 2));
  x = add(add(x, std::move(tiled)), contiguous(explicitly.transpose(1, 2)).reshape(Shape{2, 3, 8}));
  x = dropout(gelu(std::move(x)), {0.2, 1, 2, 3});
  const auto loss = linear_cross_entropy(std::move(x), table, targets);
  if (tape.recording()) tape.backward(loss);
  return loss.item();
}

ParameterStore<float> small_store() {
  ParameterStore<float> store;
  store.add("table", Shape{5, 8});
  store.add("norm", Shape{8});
  store.add("qkv", Shape{24, 8});
  store.allocate();
  store.allocate_gradients();
  float* values = store.mutable_values();
  for (Index i = 0; i < store.flat_size(); ++i) values[i] = 0.01f * static_cast<float>(i % 37);
  return store;
}

TEST(Memory, nothing_is_allocated_after_the_first_step) {
  const ThreadScope one(1);
  const ParameterStore<float> store = small_store();
  Tape<float> tape;
  small_step(tape, store);
  tape.reset();
  const Index allocations = memory::allocations_of_this_thread(), bytes = tape.pool_bytes();
  for (int step = 0; step < 20; ++step) {
    small_step(tape, store);
    tape.reset();
  }
  EXPECT_EQ(memory::allocations_of_this_thread(), allocations);
  EXPECT_EQ(tape.pool_bytes(), bytes);
}

TEST(Memory, live_nodes_return_to_their_start) {
  const ThreadScope one(1);
  const ParameterStore<float> store = small_store();
  Tape<float> tape;
  float total = 0.0f;  // a sum of floats holds no graph
  for (int step = 0; step < 50; ++step) {
    EXPECT_EQ(tape.live_nodes(), 0);
    total += small_step(tape, store);
    tape.reset();
  }
  EXPECT_GT(total, 0.0f);
}

#if !defined(__SANITIZE_ADDRESS__)  // it keeps freed memory
TEST(Memory, two_thousand_steps_grow_nothing) {
  const auto resident_bytes = [] {
    std::ifstream file("/proc/self/statm");
    Index pages = 0, resident = -1;
    file >> pages >> resident;
    return resident * sysconf(_SC_PAGESIZE);
  };
  const ThreadScope one(1);
  const ParameterStore<float> store = small_store();
  Tape<float> tape, evaluation(false);
  Index start = 0;
  float total = 0.0f;
  for (int step = 0; step < 2000; ++step) {
    total += small_step(tape, store) + small_step(evaluation, store);
    tape.reset();
    if (step == 50) start = resident_bytes();
  }
  EXPECT_GT(total, 0.0f);
  EXPECT_LE(resident_bytes() - start, Index{2} << 20);
}
#endif

TEST(Memory, reading_a_number_holds_nothing) {
  Tape<float> tape;
  float number = 0.0f;
  {
    const auto x = tape.variable(ones({3}));
    number = sum(x).item();
  }
  EXPECT_EQ(number, 3.0f);
  EXPECT_EQ(tape.live_nodes(), 0);  // sum saves nothing, so not even x waits for backward
}

TEST(Memory, what_backward_has_read_is_given_back) {
  Tape<float> tape;
  const auto x = tape.variable(ones({1000}));
  const auto y = sum(mul(mul(x, x), x));
  EXPECT_EQ(tape.live_nodes(), 3);  // x, its square (saved), the sum; the cube is gone
  tape.backward(y);
  EXPECT_EQ(tape.live_nodes(), 2);
}

TEST(Memory, and_so_is_the_first_value) {
  Tape<float> tape;
  const auto square = [&tape] {
    const auto x = tape.variable(ones({1000}));
    return sum(mul(x, x));
  };
  const auto y = square();
  EXPECT_EQ(tape.live_nodes(), 2);  // x, which square saves, and the sum
  tape.backward(y);
  EXPECT_EQ(tape.live_nodes(), 1);
}

TEST(Memory, with_recording_off_nothing_is_kept) {
  const ThreadScope one(1);
  const ParameterStore<float> store = small_store();
  Tape<float> recorded, tape(false);
  EXPECT_EQ(small_step(tape, store), small_step(recorded, store));
  const Index nodes = tape.nodes(), bytes = tape.pool_bytes();
  EXPECT_EQ(tape.live_nodes(), 0);
  for (int step = 0; step < 50; ++step) small_step(tape, store);  // no reset
  EXPECT_EQ(tape.live_nodes(), 0);
  EXPECT_EQ(tape.nodes(), nodes);
  EXPECT_EQ(tape.pool_bytes(), bytes);
  EXPECT_LT(bytes, recorded.pool_bytes());
}

TEST(Memory, a_chain_of_100000_nodes_neither_overflows_nor_leaks) {
  Tape<float> tape;
  Index bytes = 0;
  for (int round = 0; round < 3; ++round) {
    const auto x = tape.variable(ones({4}));
    auto y = x;
    for (int i = 0; i < 100000; ++i) y = mul(y, x);
    tape.backward(sum(y));
    EXPECT_EQ(gradient(x)[0], 100001.0f);
    tape.reset();
    EXPECT_EQ(tape.live_nodes(), 0);
    if (round == 0) bytes = tape.pool_bytes();
    EXPECT_EQ(tape.pool_bytes(), bytes);
  }
}

TEST(Memory, a_long_chain_may_be_dropped) {
  Tape<float> tape;
  {
    auto y = tape.variable(ones({4}));
    for (int i = 0; i < 100000; ++i) y = add(y, y);
  }
  EXPECT_EQ(tape.live_nodes(), 0);
  EXPECT_LT(tape.pool_bytes(), 1000);  // add saves nothing: two blocks are used alternately
  {
    auto y = tape.variable(ones({4}));
    for (int i = 0; i < 100000; ++i) y = mul(y, y);
  }
  tape.reset();
  EXPECT_EQ(tape.live_nodes(), 0);
}

TEST(Memory, a_value_lives_as_long_as_a_handle_to_a_part_of_it) {
  Tape<float> tape(false);
  Var<float> part;
  {
    const auto x = tape.constant(Tensor<float>({4}, {1, 2, 3, 4}));
    part = scale(x, 2.0).slice(0, 1, 2);
  }
  EXPECT_EQ(tape.live_nodes(), 1);
  const auto other = tape.constant(ones({4}));  // must not get the part's memory
  EXPECT_EQ(elements(part), (std::vector<float>{4, 6}));
  part = {};
  EXPECT_EQ(tape.live_nodes(), 1);
  EXPECT_EQ(other.size(), 4);
}

TEST(Memory, poisoned_memory_is_never_read) {
  const ThreadScope one(1);
  const ParameterStore<float> store = small_store();
  Tape<float> plain, poisoned;
  poisoned.poison_memory();
  EXPECT_EQ(small_step(plain, store), small_step(poisoned, store));
}

}  // namespace
}  // namespace handgrad::test
