#pragma once

#include "handgrad/ops/ops.h"
#include "support/values.h"

namespace handgrad::test {

/// The explicit form for operands in the layout of the tiled one, (B, T, H, D): key heads are repeated by a
/// broadcast axis, (B, H_kv, group, Q, D) against (B, H_kv, 1, K, D). A mask is as for the tiled form.
template <class S>
Var<S> explicit_attention(Var<S> q, Var<S> k, Var<S> v, AttentionOptions options) {
  const Index key_heads = k.extent(2), group = q.extent(2) / key_heads;
  const auto with_group = [](const Var<S>& x, Index heads, Index count) {  // (B, T, H, D) to (B, heads, count, T, D)
    return contiguous(x.transpose(1, 2)).reshape({x.extent(0), heads, count, x.extent(1), x.extent(3)});
  };
  if (options.mask && options.mask.shape.rank() > 2) {  // (.., H, Q, K) to (.., H_kv, group, Q, K)
    const Shape m = options.mask.shape;
    const Strides s = options.mask.strides;
    const auto at = static_cast<std::size_t>(m.rank() - 3);
    const bool each = m[-3] > 1;
    const Index batch = m.rank() == 4 ? m[0] : 1;
    options.mask.shape = Shape{batch, each ? key_heads : 1, each ? group : 1, m[-2], m[-1]};
    options.mask.strides = {m.rank() == 4 ? s[0] : 0, s[at] * group, s[at], s[at + 1], s[at + 2]};
  }
  const Var<S> y = scaled_dot_product_attention(with_group(q, key_heads, group), with_group(k, key_heads, 1),
                                                with_group(v, key_heads, 1), options);
  return contiguous(y.reshape({q.extent(0), q.extent(2), q.extent(1), v.extent(3)}).transpose(1, 2));
}

/// Operands, output and gradients of an attention of heads.
template <class S>
struct AttentionRun {
  Tensor<S> q, k, v, seed;
  std::vector<S> y, dq, dk, dv;

  AttentionRun(const Shape& q_shape, const Shape& k_shape, const Shape& v_shape)
      : q(random_tensor<S>(q_shape, 1)),
        k(random_tensor<S>(k_shape, 2)),
        v(random_tensor<S>(v_shape, 3)),
        seed(random_tensor<S>(q_shape.with(-1, v_shape[-1]), 4)) {}

  template <class F>
  void go(F attend) {
    Tape<S> tape;
    tape.poison_memory();
    const auto vq = tape.variable(q), vk = tape.variable(k), vv = tape.variable(v);
    const auto out = attend(vq, vk, vv);
    y = elements(out);
    tape.backward(out, seed);
    dq = gradient(vq), dk = gradient(vk), dv = gradient(vv);
  }
};

/// Which scalar, and which of the two forms.
template <class S, bool is_tiled>
struct AttentionForm {
  using Scalar = S;
  static constexpr bool tiled = is_tiled;
};
using EveryAttention = ::testing::Types<AttentionForm<float, false>, AttentionForm<double, false>,
                                        AttentionForm<float, true>, AttentionForm<double, true>>;

template <class Form>
class Attention : public ::testing::Test {
 public:
  template <class S>
  static Var<S> attend(Var<S> q, Var<S> k, Var<S> v, AttentionOptions options) {
    options.query_tile = options.key_tile = 4;
    return Form::tiled ? causal_attention(q, k, v, options) : explicit_attention(q, k, v, options);
  }
};

}  // namespace handgrad::test
