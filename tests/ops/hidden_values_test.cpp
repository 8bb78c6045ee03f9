#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <set>

#include "handgrad/core/parallel.h"
#include "support/attention.h"

// Hidden keys and values change nothing, finite or not: in both forms of attention, both passes, all tile sizes.

namespace handgrad::test {
namespace {

struct Case {
  Index batch, queries, keys, heads, key_heads, width, value_width;
  bool causal;
  bool masked;
  double dropout = 0.0;
  bool mask_per_query = false;  // a mask of (B, 1, T, 1): a query sees all keys or none
};

// Visible with probability 0.6; query 1 sees nothing and key 2 is seen by no query.
Mask mask_of(const Case& c) {
  const Random random(5, Stream::audit);
  Mask mask({c.batch, 1, c.queries, c.keys});
  for (Index i = 0; i < mask.size(); ++i) {
    const bool alone = i % c.keys == 2 || (c.queries > 2 && i / c.keys % c.queries == 1);
    mask[i] = !alone && random.uniform(static_cast<std::uint64_t>(i)) < 0.6;
    if (c.mask_per_query) mask[i] = i / c.keys % c.queries % 2 == 0;
  }
  return mask;
}

// Of equal columns the first.
Mask column_of(const Mask& mask, const Case& c) {
  Mask column({c.batch, 1, c.queries, 1});
  for (Index row = 0; row < column.size(); ++row) column[row] = mask[row * c.keys];
  return column;
}

// Which rows a planted number may reach: those of queries that see its key (or are its own row), and of the keys that
// these queries see.
class Reach {
 public:
  Reach(const Case& c, const Mask& mask) : c_(c), mask_(mask) {}

  bool sees(Index b, Index i, Index j) const {
    return (!c_.causal || j <= i + c_.keys - c_.queries) &&
           (!c_.masked || mask_[(b * c_.queries + i) * c_.keys + j] != 0);
  }
  /// Key j of key head kv is not finite.
  void from_key(Index b, Index j, Index kv) {
    b_ = b;
    const Index group = c_.heads / c_.key_heads;
    for (Index h = kv * group; h < (kv + 1) * group; ++h) {
      for (Index i = 0; i < c_.queries; ++i) {
        if (sees(b, i, j)) queries_.insert({i, h});
      }
    }
  }
  void from_query(Index b, Index i, Index h) { b_ = b, queries_.insert({i, h}); }

  bool query(Index b, Index i, Index h) const { return b == b_ && queries_.contains({i, h}); }
  bool key(Index b, Index j, Index kv) const {
    for (const auto& [i, h] : queries_) {
      if (b == b_ && h / (c_.heads / c_.key_heads) == kv && sees(b, i, j)) return true;
    }
    return false;
  }
  bool any() const {
    for (const auto& [i, h] : queries_) {
      for (Index j = 0; j < c_.keys; ++j) {
        if (sees(b_, i, j)) return true;
      }
    }
    return false;
  }

 private:
  const Case& c_;
  const Mask& mask_;
  Index b_ = 0;
  std::set<std::pair<Index, Index>> queries_;
};

// Rows of (B, T, H, width) for which `reached` is false have equal bits.
template <class S, class Reached>
void expect_rows_kept(const std::vector<S>& now, const std::vector<S>& before, Index time, Index heads, Index width,
                      Reached reached, const std::string& what) {
  for (Index row = 0; row * width < static_cast<Index>(now.size()); ++row) {
    const Index h = row % heads, t = row / heads % time, b = row / heads / time;
    if (reached(b, t, h)) continue;
    const auto at = static_cast<std::size_t>(row * width);
    ASSERT_EQ(std::memcmp(&now[at], &before[at], static_cast<std::size_t>(width) * sizeof(S)), 0)
        << what << " of sequence " << b << ", place " << t << ", head " << h << ": " << now[at] << " for "
        << before[at];
  }
}

template <class S>
class HiddenValues {
 public:
  HiddenValues(const Case& c, bool tiled, Index query_tile, Index key_tile)
      : c_(c), mask_(mask_of(c)), column_(column_of(mask_, c)), tiled_(tiled), run_(make()), finite_(make()) {
    options_.causal = c.causal;
    if (c.masked) options_.mask = c.mask_per_query ? column_.view() : mask_.view();
    options_.dropout = {c.dropout, 9, 2, 40};
    options_.query_tile = query_tile, options_.key_tile = key_tile;
  }

  void plant_everywhere(Index step) {
    go(finite_);
    for (const double value : {std::nan(""), HUGE_VAL, -HUGE_VAL}) {
      plant(run_.k, value, step, "k", true);
      plant(run_.v, value, step, "v", true);
      plant(run_.q, value, step, "q", false);
      plant(run_.seed, value, step, "dy", false);
    }
  }

 private:
  AttentionRun<S> make() const {
    return AttentionRun<S>({c_.batch, c_.queries, c_.heads, c_.width}, {c_.batch, c_.keys, c_.key_heads, c_.width},
                           {c_.batch, c_.keys, c_.key_heads, c_.value_width});
  }
  void go(AttentionRun<S>& run) const {
    run.go([&](auto q, auto k, auto v) {
      return tiled_ ? causal_attention(q, k, v, options_) : explicit_attention(q, k, v, options_);
    });
  }

  void plant(Tensor<S>& operand, double value, Index step, const std::string& name, bool of_key) {
    const Index time = operand.shape()[1], heads = operand.shape()[2], width = operand.shape()[3];
    for (Index at = 0; at < operand.size(); at += step) {
      const Index h = at / width % heads, t = at / width / heads % time, b = at / width / heads / time;
      Reach reach(c_, mask_);
      of_key ? reach.from_key(b, t, h) : reach.from_query(b, t, h);
      const S kept = std::exchange(operand[at], static_cast<S>(value));
      go(run_);
      operand[at] = kept;
      SCOPED_TRACE(name + "[" + std::to_string(at) + "] = " + std::to_string(value));
      compare(reach, name == "dy");
      if (::testing::Test::HasFatalFailure()) return;
    }
  }

  void compare(const Reach& reach, bool only_backward) {
    const auto query = [&](Index b, Index t, Index h) { return reach.query(b, t, h); };
    const auto key = [&](Index b, Index t, Index h) { return reach.key(b, t, h); };
    const auto none = [](Index, Index, Index) { return false; };
    if (only_backward) {
      expect_rows_kept(run_.y, finite_.y, c_.queries, c_.heads, c_.value_width, none, "y");
    } else {
      expect_rows_kept(run_.y, finite_.y, c_.queries, c_.heads, c_.value_width, query, "y");
    }
    expect_rows_kept(run_.dq, finite_.dq, c_.queries, c_.heads, c_.width, query, "dq");
    expect_rows_kept(run_.dk, finite_.dk, c_.keys, c_.key_heads, c_.width, key, "dk");
    expect_rows_kept(run_.dv, finite_.dv, c_.keys, c_.key_heads, c_.value_width, key, "dv");
    bool shows = false;
    for (const auto* values : {&run_.y, &run_.dq, &run_.dk, &run_.dv}) {
      for (const S x : *values) shows |= !(x - x == S(0));
    }
    EXPECT_EQ(shows, reach.any()) << "what is seen must show";
  }

  Case c_;
  Mask mask_, column_;
  bool tiled_;
  AttentionOptions options_;
  AttentionRun<S> run_, finite_;
};

template <class S>
void check(const Case& c, Index step = 1) {
  const ThreadScope one(1);
  {
    SCOPED_TRACE("textbook");
    HiddenValues<S>(c, false, 1, 1).plant_everywhere(step);
  }
  for (const auto& [query_tile, key_tile] : {std::pair<Index, Index>{1, 1}, {2, 2}, {3, 2}, {2, 4}, {128, 128}}) {
    SCOPED_TRACE("tiles " + std::to_string(query_tile) + " " + std::to_string(key_tile));
    HiddenValues<S>(c, true, query_tile, key_tile).plant_everywhere(step);
  }
}

template <class S>
class HiddenValue : public ::testing::Test {};
using Real = ::testing::Types<float, double>;
TYPED_TEST_SUITE(HiddenValue, Real);

TYPED_TEST(HiddenValue, causal) {
  check<TypeParam>({1, 2, 2, 1, 1, 1, 1, true, false});
  check<TypeParam>({2, 5, 5, 2, 2, 2, 3, true, false});
}
TYPED_TEST(HiddenValue, fewer_queries_than_keys_and_grouped_heads) {
  check<TypeParam>({1, 3, 7, 4, 2, 2, 1, true, false});
  check<TypeParam>({1, 4, 5, 2, 1, 3, 2, true, false});
}
TYPED_TEST(HiddenValue, masked) {
  check<TypeParam>({2, 4, 5, 2, 1, 2, 3, false, true});
  check<TypeParam>({1, 6, 4, 2, 2, 1, 2, false, true});
}
TYPED_TEST(HiddenValue, under_a_mask_that_broadcasts_over_keys) {
  check<TypeParam>({2, 4, 5, 2, 1, 2, 3, false, true, 0.0, true});
  check<TypeParam>({1, 5, 5, 2, 2, 1, 2, true, true, 0.0, true});
}
TYPED_TEST(HiddenValue, causal_and_masked) { check<TypeParam>({2, 5, 6, 2, 1, 2, 2, true, true}); }
TYPED_TEST(HiddenValue, with_dropout) { check<TypeParam>({1, 5, 5, 2, 1, 2, 2, true, false, 0.4}); }
// Products of whole tiles, of edges of kernels, and of an incomplete last tile.
TYPED_TEST(HiddenValue, of_many_tiles) { check<TypeParam>({1, 37, 41, 1, 1, 18, 17, true, false}, 61); }

// One value is hidden from the first query.
TEST(HiddenValueOfOne, an_infinite_value_leaves_the_first_query_alone) {
  for (const Index tile : {1, 2, 128}) {
    Tape<float> tape;
    const auto one = tape.variable(Tensor<float>(Shape{1, 2, 1, 1}, {1.0f, 1.0f}));
    const auto v = tape.variable(Tensor<float>(Shape{1, 2, 1, 1}, {2.0f, std::numeric_limits<float>::infinity()}));
    const auto y = causal_attention(one, one, v, {.query_tile = tile, .key_tile = tile});
    EXPECT_EQ(y.view().data[0], 2.0f);
    EXPECT_EQ(y.view().data[1], std::numeric_limits<float>::infinity());
  }
}

}  // namespace
}  // namespace handgrad::test
