#include <functional>

#include "handgrad/core/parallel.h"
#include "handgrad/ops/ops.h"
#include "support/values.h"

// A batch split into micro-batches at blocks of sequences gives the bits of the whole: outputs and weight gradients.

namespace handgrad::test {
namespace {

constexpr Index time = 100, width = 12, classes = 9;  // a block is 3 sequences of 100
constexpr Index whole_batch = 9;

struct Part {
  Index first, count;  // sequences
};
using Batches = std::vector<Part>;

// Made of the operands x (B, T, C) and the parameters w (9, 12), v (12), b (9).
using Function = std::function<Var<float>(Tape<float>&, const ParameterStore<float>&, Var<float>, Part)>;

std::vector<TokenId> tokens(Part part) {
  std::vector<TokenId> ids;
  for (Index i = part.first * time; i < (part.first + part.count) * time; ++i) {
    ids.push_back(i % 11 == 3 ? -100 : static_cast<TokenId>(i * i % classes));
  }
  return ids;
}

struct Outcome {
  std::vector<float> y, gradients;
};

Outcome run(const Function& f, const Batches& batches) {
  const ThreadScope one(1);
  ParameterStore<float> store;
  store.add("w", Shape{classes, width});
  store.add("v", Shape{width});
  store.add("b", Shape{classes});
  store.allocate();
  store.allocate_gradients();
  const Tensor<float> values = random_tensor<float>({store.flat_size()}, 1);
  std::copy_n(values.data(), store.flat_size(), store.mutable_values());
  const Tensor<float> x = random_tensor<float>({whole_batch, time, width}, 2);
  Outcome outcome;
  for (const Part& part : batches) {
    Tape<float> tape;
    const auto y = f(tape, store, tape.constant(x).slice(0, part.first, part.count), part);
    const auto bits = elements(y);
    if (y.size() == 1) {
      tape.backward(y);
    } else {
      outcome.y.insert(outcome.y.end(), bits.begin(), bits.end());
      const Tensor<float> all = random_tensor<float>(y.shape().with(0, whole_batch), 3);
      const std::size_t each = bits.size() / static_cast<std::size_t>(part.count);
      tape.backward(
          y, Tensor<float>(y.shape(), all.span().subspan(each * static_cast<std::size_t>(part.first), bits.size())));
    }
  }
  outcome.gradients.assign(store.gradients(), store.gradients() + store.flat_size());
  return outcome;
}

void expect_the_same_bits(const Function& f) {
  const Outcome whole = run(f, {{0, 9}});
  for (const Batches& batches : {Batches{{0, 3}, {3, 6}}, Batches{{0, 6}, {6, 3}}, Batches{{0, 3}, {3, 3}, {6, 3}}}) {
    const Outcome parts = run(f, batches);
    EXPECT_TRUE(same_bits(parts.y, whole.y)) << batches.size() << " parts";
    EXPECT_TRUE(same_bits(parts.gradients, whole.gradients)) << batches.size() << " parts";
  }
}

TEST(MicroBatches, linear) {
  expect_the_same_bits([](auto& tape, auto& store, auto x, Part) {
    return linear(x, tape.parameter(store, 0), tape.parameter(store, 2));
  });
}

// Rows longer than one inner tile: another split of them would change bits.
TEST(MicroBatches, a_weight_gradient_is_the_sum_of_its_blocks) {
  const Index block = 500, rows = 3 * block;
  const auto x = random_tensor<float>({rows, width}, 1), dy = random_tensor<float>({rows, classes}, 2);
  Tensor<float> whole({classes, width}), parts({classes, width});
  linear_backward<float>(x.rows(), {}, block, dy.rows(), {{}, whole.rows(), {}});
  for (Index first = 0; first < rows; first += block) {
    linear_backward<float>(x.rows().slice(first, block), {}, block, dy.rows().slice(first, block),
                           {{}, parts.rows(), {}});
  }
  EXPECT_TRUE(same_bits(elements(whole.view()), elements(parts.view())));
}

TEST(MicroBatches, norms) {
  expect_the_same_bits([](auto& tape, auto& store, auto x, Part) {
    return layer_norm(x, tape.parameter(store, 1), tape.parameter(store, 0).slice(0, 0, 1).reshape({width}));
  });
  expect_the_same_bits([](auto& tape, auto& store, auto x, Part) { return rms_norm(x, tape.parameter(store, 1)); });
  expect_the_same_bits([](auto& tape, auto& store, auto x, Part) {
    return rms_norm(x.split_last(3), tape.parameter(store, 1).slice(0, 0, 4));
  });
}

TEST(MicroBatches, embedding) {
  expect_the_same_bits([](auto& tape, auto& store, auto, Part part) {
    auto ids = tokens(part);
    for (TokenId& id : ids) id = id < 0 ? 0 : id;
    return embedding(tape.parameter(store, 0), std::span<const TokenId>(ids), Shape{part.count, time});
  });
}

TEST(MicroBatches, losses_divided_by_the_targets_of_the_whole) {
  const Index divisor = count_targets(tokens({0, whole_batch}), -100);
  for (const Index budget : {Index{0}, Index{1} << 30}) {
    for (const Index slab : {0, 64}) {
      LossSum whole, parts;
      LossSum* report = nullptr;
      const Function head = [&](auto& tape, auto& store, auto x, Part part) {
        return linear_cross_entropy(
            x, tape.parameter(store, 0), tokens(part),
            {.divisor = divisor, .report = report, .logits_budget_bytes = budget, .slab_rows = slab});
      };
      expect_the_same_bits(head);
      report = &whole;
      run(head, {{0, 9}});
      report = &parts;
      run(head, {{0, 3}, {3, 6}});
      EXPECT_EQ(whole.sum, parts.sum);
      EXPECT_EQ(whole.targets, parts.targets);
    }
  }
  expect_the_same_bits([&](auto& tape, auto& store, auto x, Part part) {
    return cross_entropy(linear(x, tape.parameter(store, 0), {}), tokens(part), {.divisor = divisor});
  });
}

}  // namespace
}  // namespace handgrad::test
