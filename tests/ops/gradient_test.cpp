#include "support/gradient_test.h"

#include <algorithm>

#include "handgrad/ops/ops.h"
#include "support/operations.h"

// Every operation, at small and odd sizes, and with at least three tiles and an incomplete last one on every tiled
// axis.

namespace handgrad::test {
namespace {

template <class S>
const RopeTable<S>& rope_table(Index width, RopePairing pairing) {
  static std::map<std::pair<Index, RopePairing>, RopeTable<S>> tables;
  const auto [place, added] = tables.try_emplace({width, pairing}, width, 100.0, pairing);
  if (added) place->second.extend(16);
  return place->second;
}

template <class X>
struct ScalarOf;
template <class S>
struct ScalarOf<Inputs<S>> {
  using type = S;
};
template <class X>
using Scalar = typename ScalarOf<X>::type;

PositionsRef positions(std::vector<Index> values, Index batch) {
  static std::vector<std::vector<Index>> kept;
  kept.push_back(std::move(values));
  return {kept.back().data(), batch, static_cast<Index>(kept.back().size()) / batch};
}

std::vector<TokenId> tokens(Index count, TokenId below) {
  const Random random(3, Stream::data_order);
  std::vector<TokenId> ids;
  for (Index i = 0; i < count; ++i) {
    ids.push_back(static_cast<TokenId>(random.below(static_cast<std::uint64_t>(i), static_cast<std::uint64_t>(below))));
  }
  return ids;
}

Mask random_mask(const Shape& shape, double visible) {
  const Random random(5, Stream::audit);
  Mask mask(shape);
  for (Index i = 0; i < mask.size(); ++i) mask[i] = random.uniform(static_cast<std::uint64_t>(i)) < visible;
  return mask;
}

AttentionOptions small_tiles(AttentionOptions options = {}) {
  options.query_tile = options.key_tile = 4;
  return options;
}

const DropoutMask third{0.3, 9, 2, 5};

}  // namespace

GRADIENT_TEST(add, same, shapes({{2, 3}, {2, 3}}), [](auto x) { return add(x[0], x[1]); })
GRADIENT_TEST(add, broadcast, shapes({{2, 1, 4}, {3, 1}}), [](auto x) { return add(x[0], x[1]); })
GRADIENT_TEST(add, twice_the_same, shapes({{2, 3}}), [](auto x) { return add(x[0], x[0]); })
GRADIENT_TEST(add, scalar, shapes({{1}, {5, 3}}), [](auto x) { return add(x[0], x[1]); })
GRADIENT_TEST(mul, same, shapes({{2, 3}, {2, 3}}), [](auto x) { return mul(x[0], x[1]); })
GRADIENT_TEST(mul, broadcast, shapes({{2, 1, 4}, {3, 1}}), [](auto x) { return mul(x[0], x[1]); })
GRADIENT_TEST(mul, square, shapes({{2, 3}}), [](auto x) { return mul(x[0], x[0]); })
GRADIENT_TEST(scale, plain, shapes({{3, 5}}), [](auto x) { return scale(x[0], -1.7); })
GRADIENT_TEST(sum, plain, shapes({{3, 5}}), [](auto x) { return sum(x[0]); })
GRADIENT_TEST(sum, of_a_slice, shapes({{3, 5, 2}}), [](auto x) { return sum(x[0].slice(1, 1, 3).transpose(1, 2)); })
GRADIENT_TEST(mean, plain, shapes({{3, 5}}), [](auto x) { return mean(x[0]); })
GRADIENT_TEST(mean, of_a_slice, shapes({{3, 5, 2}}), [](auto x) { return mean(x[0].slice(1, 1, 3).transpose(1, 2)); })
GRADIENT_TEST(mean, of_one, shapes({{1, 1}}), [](auto x) { return mean(x[0]); })
GRADIENT_TEST(contiguous, transposed, shapes({{2, 3, 4}}), [](auto x) { return contiguous(x[0].transpose(0, 2)); })
GRADIENT_TEST(concat, middle, shapes({{2, 3, 2}, {2, 1, 2}}), [](auto x) { return concat(x[0], x[1], 1); })
GRADIENT_TEST(concat, last, shapes({{2, 3}, {2, 4}}), [](auto x) { return concat(x[0], x[1], -1); })

GRADIENT_TEST(relu, plain, shapes({{7, 5}}), [](auto x) { return relu(x[0]); })
GRADIENT_TEST(relu_squared, plain, shapes({{7, 5}}), [](auto x) { return relu_squared(x[0]); })
GRADIENT_TEST(silu, plain, shapes({{7, 5}}), [](auto x) { return silu(x[0]); })
GRADIENT_TEST(gelu, plain, shapes({{7, 5}}), [](auto x) { return gelu(x[0]); })
GRADIENT_TEST(gelu, wide, shapes({{7, 5}}), [](auto x) { return gelu(scale(x[0], 4.0)); })
GRADIENT_TEST(gelu, many_tiles, shapes({{700, 51}}), [](auto x) { return gelu(x[0]); })
GRADIENT_TEST(gelu_tanh, plain, shapes({{7, 5}}), [](auto x) { return gelu_tanh(x[0]); })
GRADIENT_TEST(swiglu, plain, shapes({{7, 5}, {7, 5}}), [](auto x) { return swiglu(x[0], x[1]); })
GRADIENT_TEST(swiglu, halves_of_one, shapes({{7, 6}}),
              [](auto x) { return swiglu(x[0].slice(1, 0, 3), x[0].slice(1, 3, 3)); })
GRADIENT_TEST(dropout, plain, shapes({{7, 5}}), [](auto x) { return dropout(x[0], third); })

GRADIENT_TEST(matmul, plain, shapes({{3, 4}, {4, 5}}), [](auto x) { return matmul(x[0], x[1], 0.7); })
GRADIENT_TEST(matmul, of_ones, shapes({{1, 1}, {1, 1}}), [](auto x) { return matmul(x[0], x[1]); })
GRADIENT_TEST(matmul, batched, shapes({{2, 3, 4}, {2, 4, 5}}), [](auto x) { return matmul(x[0], x[1]); })
GRADIENT_TEST(matmul, broadcast, shapes({{2, 3, 3, 4}, {3, 4, 5}}), [](auto x) { return matmul(x[0], x[1]); })
GRADIENT_TEST(matmul, broadcast_middle, shapes({{2, 3, 3, 4}, {2, 1, 4, 5}}), [](auto x) { return matmul(x[0], x[1]); })
GRADIENT_TEST(matmul, transposed, shapes({{4, 3}, {5, 4}}),
              [](auto x) { return matmul(x[0].transpose(0, 1), x[1].transpose(0, 1)); })
GRADIENT_TEST(matmul, gram, shapes({{2, 3, 4}}), [](auto x) { return matmul(x[0], x[0].transpose(-1, -2)); })

GRADIENT_TEST(linear, bias, shapes({{2, 3, 5}, {4, 5}, {4}}), [](auto x) { return linear(x[0], x[1], x[2]); })
GRADIENT_TEST(linear, no_bias, shapes({{2, 3, 5}, {4, 5}}), [](auto x) { return linear(x[0], x[1], {}); })
GRADIENT_TEST(linear, of_ones, shapes({{1, 1, 1}, {1, 1}, {1}}), [](auto x) { return linear(x[0], x[1], x[2]); })
GRADIENT_TEST(linear, many_tiles, shapes({{5, 130, 7}, {800, 7}, {800}}),
              [](auto x) { return linear(x[0], x[1], x[2]); })
GRADIENT_TEST(linear, of_a_slice, shapes({{2, 3, 7}, {4, 5}}),
              [](auto x) { return linear(x[0].slice(2, 1, 5), x[1], {}); })

GRADIENT_TEST(embedding, tokens, shapes({{5, 3}}), [](auto x) {
  static const auto ids = tokens(8, 5);
  return embedding(x[0], std::span<const TokenId>(ids), Shape{2, 4});
})
GRADIENT_TEST(embedding, positions, shapes({{9, 70}}), [](auto x) {
  return embedding(x[0], positions({7, 2, 5, 0, 0, 1}, 2), 2);
})

GRADIENT_TEST(softmax, last, shapes({{3, 5}}), [](auto x) { return softmax(x[0]); })
GRADIENT_TEST(softmax, first, shapes({{3, 5, 2}}), [](auto x) { return softmax(x[0], 0); })
GRADIENT_TEST(softmax, of_one, shapes({{3, 1}}), [](auto x) { return softmax(x[0]); })
GRADIENT_TEST(softmax, long_rows, shapes({{400, 67}}), [](auto x) { return softmax(x[0]); })
GRADIENT_TEST(log_softmax, last, shapes({{3, 5}}), [](auto x) { return log_softmax(x[0]); })
GRADIENT_TEST(log_softmax, first, shapes({{3, 5, 2}}), [](auto x) { return log_softmax(x[0], 0); })
GRADIENT_TEST(log_softmax, long_rows, shapes({{400, 67}}), [](auto x) { return log_softmax(x[0]); })
GRADIENT_TEST(masked_fill, row, shapes({{3, 4, 5}}), [](auto x) {
  static const Mask mask = random_mask({4, 5}, 0.5);
  return masked_fill(x[0], mask.view(), -2.0);
})

GRADIENT_TEST(layer_norm, bias, shapes({{2, 3, 5}, {5}, {5}}), [](auto x) { return layer_norm(x[0], x[1], x[2]); })
GRADIENT_TEST(layer_norm, no_bias, shapes({{2, 3, 5}, {5}}), [](auto x) { return layer_norm(x[0], x[1], {}); })
GRADIENT_TEST(layer_norm, many_tiles, shapes({{3, 190, 150}, {150}, {150}}),
              [](auto x) { return layer_norm(x[0], x[1], x[2]); })
GRADIENT_TEST(rms_norm, plain, shapes({{2, 3, 5}, {5}}), [](auto x) { return rms_norm(x[0], x[1]); })
GRADIENT_TEST(rms_norm, of_one, shapes({{2, 3, 1}, {1}}), [](auto x) { return rms_norm(x[0], x[1], 0.1); })
GRADIENT_TEST(rms_norm, heads, shapes({{2, 3, 12}, {4}}),
              [](auto x) { return rms_norm(x[0].slice(2, 4, 8).split_last(2), x[1]); })
GRADIENT_TEST(rms_norm, many_tiles, shapes({{3, 190, 150}, {150}}), [](auto x) { return rms_norm(x[0], x[1]); })

GRADIENT_TEST(rope, adjacent, shapes({{2, 3, 2, 4}}), [](auto x) {
  return rope(x[0], positions({7, 2, 5, 0, 0, 1}, 2), rope_table<Scalar<decltype(x)>>(4, RopePairing::adjacent));
})
GRADIENT_TEST(rope, half, shapes({{2, 3, 2, 6}}), [](auto x) {
  return rope(x[0], positions({7, 2, 15}, 1), rope_table<Scalar<decltype(x)>>(6, RopePairing::half));
})
GRADIENT_TEST(rope, of_a_packed_projection, shapes({{2, 3, 16}}), [](auto x) {
  return rope(x[0].slice(2, 4, 8).split_last(2), positions({0, 1, 2}, 1),
              rope_table<Scalar<decltype(x)>>(4, RopePairing::half));
})

GRADIENT_TEST(scaled_dot_product_attention, causal, shapes({{2, 3, 4}, {2, 5, 4}, {2, 5, 3}}),
              [](auto x) { return scaled_dot_product_attention(x[0], x[1], x[2]); })
GRADIENT_TEST(scaled_dot_product_attention, masked, shapes({{2, 2, 3, 4}, {2, 1, 5, 4}, {2, 1, 5, 3}}), [](auto x) {
  static const Mask mask = random_mask({2, 1, 3, 5}, 0.6);
  return scaled_dot_product_attention(x[0], x[1], x[2], {.causal = false, .mask = mask.view(), .dropout = third});
})
GRADIENT_TEST(causal_attention, of_ones, shapes({{1, 1, 1, 1}, {1, 1, 1, 1}, {1, 1, 1, 1}}),
              [](auto x) { return causal_attention(x[0], x[1], x[2]); })
GRADIENT_TEST(causal_attention, tiles, shapes({{2, 14, 2, 3}, {2, 14, 2, 3}, {2, 14, 2, 5}}),
              [](auto x) { return causal_attention(x[0], x[1], x[2], small_tiles()); })
GRADIENT_TEST(causal_attention, grouped_and_cached, shapes({{1, 6, 4, 3}, {1, 15, 2, 3}, {1, 15, 2, 3}}),
              [](auto x) { return causal_attention(x[0], x[1], x[2], small_tiles()); })
GRADIENT_TEST(causal_attention, masked, shapes({{2, 13, 2, 3}, {2, 13, 1, 3}, {2, 13, 1, 3}}), [](auto x) {
  static const Mask mask = random_mask({2, 1, 13, 13}, 0.5);
  return causal_attention(x[0], x[1], x[2], small_tiles({.mask = mask.view()}));
})
GRADIENT_TEST(causal_attention, dropout, shapes({{2, 13, 2, 3}, {2, 13, 2, 3}, {2, 13, 2, 3}}),
              [](auto x) { return causal_attention(x[0], x[1], x[2], small_tiles({.dropout = third})); })
GRADIENT_TEST(causal_attention, one_for_all, shapes({{2, 9, 2, 3}}),
              [](auto x) { return causal_attention(x[0], x[0], x[0], small_tiles()); })
GRADIENT_TEST(causal_attention, packed, shapes({{2, 9, 24}}), [](auto x) {
  const auto qkv = x[0];
  return causal_attention(qkv.slice(2, 0, 12).split_last(4), qkv.slice(2, 12, 6).split_last(2),
                          qkv.slice(2, 18, 6).split_last(2), small_tiles());
})

GRADIENT_TEST(cross_entropy, plain, shapes({{2, 3, 5}}), [](auto x) {
  static const std::vector<TokenId> targets{1, -100, 4, 0, 0, 2};
  return cross_entropy(x[0], targets);
})
GRADIENT_TEST(cross_entropy, smoothed, shapes({{6, 5}}), [](auto x) {
  static const std::vector<TokenId> targets{1, -100, 4, 0, 0, 2};
  return cross_entropy(x[0], targets, {.label_smoothing = 0.1, .divisor = 11});
})
GRADIENT_TEST(linear_cross_entropy, kept, shapes({{3, 190, 3}, {5, 3}}), [](auto x) {
  static const auto targets = tokens(570, 5);
  return linear_cross_entropy(x[0], x[1], targets);
})
GRADIENT_TEST(linear_cross_entropy, recomputed, shapes({{2, 7, 3}, {5, 3}}), [](auto x) {
  static const auto targets = [] {
    auto t = tokens(14, 5);
    t[3] = -100;
    return t;
  }();
  return linear_cross_entropy(x[0], x[1], targets, {.label_smoothing = 0.1, .logits_budget_bytes = 0, .slab_rows = 4});
})

TEST(Gradient, every_operation_has_a_test) {
  const std::string text = text_of(HANDGRAD_SOURCE_DIR "/tests/ops/gradient_test.cpp");
  for (const std::string& name : operation_names()) {
    EXPECT_NE(text.find("GRADIENT_TEST(" + name + ","), std::string::npos) << name << " has no gradient test";
  }
}

}  // namespace handgrad::test
