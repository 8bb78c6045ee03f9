#include "handgrad/ops/scaled_dot_product_attention.h"

#include <fmt/format.h>

#include <limits>

#include "core/instantiate.h"
#include "handgrad/autograd/output.h"
#include "handgrad/core/errors.h"
#include "handgrad/ops/dropout.h"
#include "handgrad/ops/masked_fill.h"
#include "handgrad/ops/matmul.h"
#include "handgrad/ops/softmax.h"
#include "ops/attention_checks.h"
#include "ops/attention_visibility.h"
#include "ops/matrix_stack.h"

namespace handgrad {
namespace {

constexpr const char* operation = "scaled_dot_product_attention";

// The rules for q (..., Q, D), k (..., K, D) and v (..., K, Dv), with one message per rule.
void check_explicit_attention(const Shape& q, const Shape& k, const Shape& v, const AttentionOptions& options) {
  const auto fail = [&](const std::string& rule) { throw ShapeError(fmt::format("{}: {}", operation, rule)); };
  if (q.rank() < 2 || k.rank() < 2 || v.rank() < 2) {
    fail(fmt::format("q, k and v must have two axes or more, got {}, {} and {}", q.to_string(), k.to_string(),
                     v.to_string()));
  }
  if (q[-1] != k[-1]) fail(fmt::format("q and k must have the same head width, got {} and {}", q[-1], k[-1]));
  if (k[-2] != v[-2]) fail(fmt::format("there must be one value per key, got {} keys and {} values", k[-2], v[-2]));
  if (options.causal && q[-2] > k[-2]) {
    fail(fmt::format("causal attention needs at least one key per query, got {} queries and {} keys", q[-2], k[-2]));
  }
  check_attention_options(operation, options);
  const auto leading = [](const Shape& shape) { return shape.with(-2, 1).with(-1, 1); };
  broadcast_shape(broadcast_shape(leading(q), leading(k), operation), leading(v), operation);
}

// True where a key is hidden, by the causal rule or the mask. The shape is (Q, K), broadcast with the shape of the
// mask. The memory belongs to this thread and is valid until the next call, so that a step allocates nothing.
MaskRef hidden_scores(const Shape& scores, const AttentionOptions& options) {
  const Index queries = scores[-2], keys = scores[-1];
  const Shape last_two{queries, keys};
  if (options.mask && broadcast_shape(scores, options.mask.shape, operation) != scores) {
    throw ShapeError(fmt::format("{}: the mask must broadcast to the scores {}, got {}", operation, scores.to_string(),
                                 options.mask.shape.to_string()));
  }
  const Shape shape = options.mask ? broadcast_shape(options.mask.shape, last_two, operation) : last_two;
  const MaskRef mask = options.mask ? broadcast_view(options.mask, shape) : MaskRef{};
  thread_local Buffer<std::uint8_t> hidden;
  if (hidden.size() < shape.size()) hidden = Buffer<std::uint8_t>(shape.size());
  for (Index r = 0; r < shape.size() / keys; ++r) {
    const Index last_visible = options.causal ? r % queries + (keys - queries) : keys - 1;
    const std::uint8_t* allowed = mask ? row_start(mask, r) : nullptr;
    for (Index j = 0; j < keys; ++j) {
      hidden[r * keys + j] = j > last_visible || (allowed && !allowed[j * last_stride(mask)]);
    }
  }
  return {hidden.data(), shape, contiguous_strides(shape)};
}

// Both products have the name and the results of matmul, except that a row that is not finite is not added to a row
// from which it is hidden.

// y = scale q k_t. dy is 0 where masked_fill has hidden a score.
//   dq += scale dy k,   dk^T += scale q^T dy
template <class S>
Var<S> product_of_scores(Var<S> q, Var<S> k_t, double scale, MaskRef hidden) {
  auto y = output("matmul", product_shape(q.shape(), k_t.shape()), q, k_t);
  matmul_forward<S>(q.view(), k_t.view(), scale, y.view());
  return y.saves(q, k_t, hidden).on_backward([scale](const auto& saved, auto dy, auto dq, auto dk_t) {
    const auto& [q_saved, k_saved, hidden_saved] = saved;
    const Stack<const S> queries(q_saved, dy.shape, "q"), keys(k_saved, dy.shape, "k"), upstream(dy, dy.shape, "dy");
    const Stack<const std::uint8_t> mask(hidden_saved, dy.shape, "mask");
    const S factor = constant<S>(scale);
    if (dq) {
      const Stack<S> into(dq, dy.shape, "dq");
      for_each_matrix(into, [&](Index i, Rows<S> c) {
        const Operand<S> k = operand(keys, i, true);
        multiply_seen<S>(operand(upstream, i, false), k, factor, Store::add, c, into.transpose, all_finite(k.matrix),
                         [rows = mask.at(i)](Index r, Index key, Index) { return !rows.row(r)[key]; });
      });
    }
    if (dk_t) {
      const Stack<S> into(dk_t, dy.shape, "dk");
      for_each_matrix(into, [&](Index i, Rows<S> c) {
        const Operand<S> q_i = operand(queries, i, false);
        multiply_seen<S>(operand(upstream, i, true), q_i, factor, Store::add, c, flipped(into.transpose),
                         all_finite(q_i.matrix),
                         [rows = mask.at(i)](Index key, Index r, Index) { return !rows.row(r)[key]; });
      });
    }
  });
}

// True if a row of probabilities is NaN. Softmax then gives NaN for all of the row, hidden keys included.
template <class S>
bool has_nan_row(Rows<const S> probabilities) {
  for (Index r = 0; r < probabilities.rows; ++r) {
    if (probabilities.row(r)[0] != probabilities.row(r)[0]) return true;
  }
  return false;
}

// y = p v; hidden values do not take part.
template <class S>
void values_forward(View<const S> p, View<const S> v, MaskRef hidden, View<S> y) {
  const Stack<const S> left(p, y.shape, "p"), right(v, y.shape, "v");
  const Stack<const std::uint8_t> mask(hidden, y.shape, "mask");
  const Stack<S> out(y, y.shape, "y");
  parallel_tiles(out.count(), [&](Index i) {
    const Operand<S> values = operand(right, i, false);
    multiply_seen<S>(operand(left, i, false), values, S(1), Store::assign, out.at(i), Transpose::no,
                     all_finite(values.matrix),
                     [rows = mask.at(i)](Index r, Index key, Index) { return !rows.row(r)[key]; });
  });
}

// y = p v, where p is softmax, with dropout.
//   dp += dy v^T,   dv += p^T dy
template <class S>
Var<S> product_of_values(Var<S> p, Var<S> softmax, Var<S> v, MaskRef hidden) {
  auto y = output("matmul", product_shape(p.shape(), v.shape()), p, v);
  values_forward<S>(p.view(), v.view(), hidden, y.view());
  return y.saves(p, softmax, v, hidden).on_backward([](const auto& saved, auto dy, auto dp, auto dv) {
    const auto& [p_saved, softmax_saved, v_saved, hidden_saved] = saved;
    const Stack<const S> left(p_saved, dy.shape, "p"), before(softmax_saved, dy.shape, "softmax"),
        right(v_saved, dy.shape, "v"), upstream(dy, dy.shape, "dy");
    const Stack<const std::uint8_t> mask(hidden_saved, dy.shape, "mask");
    if (dp) {
      const Stack<S> into(dp, dy.shape, "dp");
      for_each_matrix(into, [&](Index i, Rows<S> c) {
        const Operand<S> values = operand(right, i, true);
        multiply_seen<S>(operand(upstream, i, false), values, S(1), Store::add, c, into.transpose,
                         all_finite(values.matrix),
                         [rows = mask.at(i)](Index r, Index, Index key) { return !rows.row(r)[key]; });
      });
    }
    if (dv) {
      const Stack<S> into(dv, dy.shape, "dv");
      for_each_matrix(into, [&](Index i, Rows<S> c) {
        const Rows<const std::uint8_t> hides = mask.at(i);
        const Operand<S> gradient = operand(upstream, i, false);
        const auto add = [&](Rows<const S> p_i) {
          multiply_seen<S>({p_i, Transpose::yes}, gradient, S(1), Store::add, c, into.transpose,
                           all_finite(gradient.matrix), [&](Index key, Index r, Index) { return !hides.row(r)[key]; });
        };
        if (has_nan_row(before.at(i))) {
          add(SelectedCopy<S>(left.at(i), [&](Index r, Index key) { return !hides.row(r)[key]; }).matrix());
        } else {
          add(left.at(i));
        }
      });
    }
  });
}

}  // namespace

template <class S>
Var<S> scaled_dot_product_attention(Var<S> q, Var<S> k, Var<S> v, const AttentionOptions& options) {
  require_operands("scaled_dot_product_attention", q, k, v);
  check_explicit_attention(q.shape(), k.shape(), v.shape(), options);
  require_matrices(operation, "q", q.view());
  require_matrices(operation, "k", k.view());
  require_matrices(operation, "v", v.view());
  const double scale = attention_scale(options, q.extent(-1));
  const Var<S> k_t = k.transpose(-1, -2);
  if (!options.causal && !options.mask) {
    Var<S> p = softmax(matmul(std::move(q), k_t, scale));
    return matmul(dropout(std::move(p), options.dropout), std::move(v));
  }
  MaskRef hidden = hidden_scores(product_shape(q.shape(), k_t.shape()), options);
  if (q.graph().recording()) hidden.data = q.graph().arena().copy(memory_of(hidden)).data();
  Var<S> scores = product_of_scores(std::move(q), k_t, scale, hidden);
  const Var<S> p = softmax(masked_fill(std::move(scores), hidden, -std::numeric_limits<double>::infinity()));
  return product_of_values(dropout(p, options.dropout), p, std::move(v), hidden);
}

#define HANDGRAD_INSTANTIATE(S) \
  template Var<S> scaled_dot_product_attention<S>(Var<S>, Var<S>, Var<S>, const AttentionOptions&);
HANDGRAD_FOR_ALL_SCALARS(HANDGRAD_INSTANTIATE)
#undef HANDGRAD_INSTANTIATE

}  // namespace handgrad
