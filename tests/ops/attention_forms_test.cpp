#include "handgrad/core/parallel.h"
#include "support/attention.h"

// The tiled form against the explicit one: in double they agree to 1e-12, forward and every gradient.

namespace handgrad::test {
namespace {

struct Sizes {
  Index batch, queries, keys, heads, key_heads, width, value_width;
};

void expect_same(const Sizes& n, AttentionOptions options) {
  const ThreadScope one(1);
  AttentionRun<double> explicitly({n.batch, n.queries, n.heads, n.width}, {n.batch, n.keys, n.key_heads, n.width},
                                  {n.batch, n.keys, n.key_heads, n.value_width});
  explicitly.go([&](auto q, auto k, auto v) { return explicit_attention(q, k, v, options); });
  for (const auto& [query_tile, key_tile] : {std::pair<Index, Index>{4, 4}, {3, 5}, {128, 128}, {128, 2}, {1, 128}}) {
    options.query_tile = query_tile, options.key_tile = key_tile;
    AttentionRun<double> tiled(explicitly.q.shape(), explicitly.k.shape(), explicitly.v.shape());
    tiled.go([&](auto q, auto k, auto v) { return causal_attention(q, k, v, options); });
    expect_close(tiled.y, explicitly.y, 1e-12, "y");
    // With one key, or one query, dq and dk are 0 except for rounding: the error is relative to their terms.
    expect_near(tiled.dq, explicitly.dq, 1e-12, "dq");
    expect_near(tiled.dk, explicitly.dk, 1e-12, "dk");
    expect_close(tiled.dv, explicitly.dv, 1e-12, "dv");
  }
}

Mask random_mask(const Shape& shape, double visible) {
  const Random random(5, Stream::audit);
  Mask mask(shape);
  for (Index i = 0; i < mask.size(); ++i) mask[i] = random.uniform(static_cast<std::uint64_t>(i)) < visible;
  return mask;
}

TEST(AttentionForms, agree_for_causal_and_full_attention) {
  for (const Index time : {1, 2, 17}) {  // three tiles of 4 and 5 more
    expect_same({2, time, time, 2, 2, 3, 5}, {});
    expect_same({2, time, time, 2, 2, 3, 5}, {.causal = false});
    expect_same({1, time, time, 1, 1, 4, 4}, {.scale = 0.3});
  }
}

TEST(AttentionForms, agree_for_fewer_queries_than_keys_and_more) {
  for (const auto& [queries, keys] : {std::pair<Index, Index>{1, 17}, {2, 3}, {5, 17}, {13, 17}}) {
    expect_same({2, queries, keys, 2, 2, 3, 4}, {});
    expect_same({2, queries, keys, 2, 1, 3, 4}, {.causal = false});
  }
  expect_same({2, 17, 6, 2, 2, 3, 4}, {.causal = false});
}

TEST(AttentionForms, agree_for_grouped_queries) {
  for (const auto& [heads, key_heads] : {std::pair<Index, Index>{4, 2}, {6, 3}, {6, 2}, {4, 1}}) {
    expect_same({2, 9, 9, heads, key_heads, 3, 2}, {});
    expect_same({2, 3, 9, heads, key_heads, 3, 2}, {});
  }
}

TEST(AttentionForms, agree_for_every_shape_of_mask) {
  const Index batch = 2, queries = 6, keys = 9, heads = 4;
  for (const Index b : {Index{1}, batch}) {
    for (const Index h : {Index{1}, heads}) {
      for (const Index q : {Index{1}, queries}) {
        for (const Index k : {Index{1}, keys}) {
          const Mask mask = random_mask({b, h, q, k}, 0.6);
          for (const bool causal : {true, false}) {
            expect_same({batch, queries, keys, heads, 2, 3, 2}, {.causal = causal, .mask = mask.view()});
          }
        }
      }
    }
  }
  for (const Shape& shape : {Shape{heads, queries, keys}, Shape{1, queries, 1}, Shape{queries, keys}, Shape{1, keys},
                             Shape{queries, 1}, Shape{keys}, Shape{1}}) {
    const Mask mask = random_mask(shape, 0.6);
    expect_same({batch, queries, keys, heads, 2, 3, 2}, {.mask = mask.view()});
  }
}

TEST(AttentionForms, agree_when_nothing_is_visible) {
  const Mask none(Shape{1});
  expect_same({1, 5, 9, 2, 1, 3, 2}, {.causal = false, .mask = none.view()});
  AttentionRun<float> run({1, 5, 2, 3}, {1, 9, 1, 3}, {1, 9, 1, 2});
  run.go([&](auto q, auto k, auto v) {
    return causal_attention(q, k, v, {.mask = none.view(), .query_tile = 4, .key_tile = 4});
  });
  for (const auto* values : {&run.y, &run.dq, &run.dk, &run.dv}) {
    for (const float x : *values) EXPECT_EQ(x, 0.0f);
  }
}

// The first visible key of a row may be several tiles late; earlier tiles must not affect it.
TEST(AttentionForms, agree_when_the_first_tiles_are_hidden) {
  const Index keys = 17;
  for (const Index hidden : {4, 8, 9, 13, 16}) {
    Mask mask({2, keys});
    for (Index k = 0; k < keys; ++k) {
      mask[k] = k >= hidden;
      mask[keys + k] = k < 3 || k >= hidden;  // visible, then tiles without anything, then visible again
    }
    expect_same({2, 2, keys, 2, 1, 3, 2}, {.causal = false, .mask = mask.view()});
  }
}

TEST(AttentionForms, agree_with_dropout_under_equal_masks) {
  const Mask mask = random_mask({2, 1, 13, 13}, 0.7);
  for (const double probability : {0.1, 0.5}) {
    const DropoutMask dropout{probability, 9, 2, 40};
    expect_same({2, 13, 13, 4, 2, 3, 2}, {.dropout = dropout});
    expect_same({2, 13, 13, 4, 4, 3, 2}, {.causal = false, .mask = mask.view(), .dropout = dropout});
  }
}

TEST(AttentionForms, agree_for_a_late_maximum) {
  // Scores that grow from tile to tile: every tile rescales the previous sums.
  AttentionRun<double> run({1, 9, 1, 1}, {1, 9, 1, 1}, {1, 9, 1, 1}), other({1, 9, 1, 1}, {1, 9, 1, 1}, {1, 9, 1, 1});
  for (auto* r : {&run, &other}) {
    for (Index i = 0; i < 9; ++i) r->q[i] = 10.0, r->k[i] = static_cast<double>(i * i);
  }
  run.go([](auto q, auto k, auto v) { return causal_attention(q, k, v, {.query_tile = 2, .key_tile = 2}); });
  other.go([](auto q, auto k, auto v) { return explicit_attention(q, k, v, {}); });
  expect_close(run.y, other.y, 1e-12);
  expect_near(run.dq, other.dq, 1e-12);
  expect_near(run.dk, other.dk, 1e-12);
}

TEST(AttentionForms, views_of_a_packed_projection_are_read_in_place) {
  Tape<double> tape;
  const auto packed = tape.variable(random_tensor<double>({2, 9, 24}, 1));
  const auto head = [&](Index from, Index heads) { return packed.slice(2, from, heads * 3).split_last(heads); };
  const Tensor<double> seed = random_tensor<double>({2, 9, 4, 3}, 2);
  tape.backward(causal_attention(head(0, 4), head(12, 2), head(18, 2), {.query_tile = 4, .key_tile = 4}), seed);
  const auto tiled = gradient(packed);
  const Tensor<double> values = random_tensor<double>({2, 9, 24}, 1);
  tape.reset();
  const auto again = tape.variable(values);
  const auto other = [&](Index from, Index heads) { return again.slice(2, from, heads * 3).split_last(heads); };
  tape.backward(explicit_attention(other(0, 4), other(12, 2), other(18, 2), {}), seed);
  expect_close(tiled, gradient(again), 1e-12);
}

}  // namespace
}  // namespace handgrad::test
