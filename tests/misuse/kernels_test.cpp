#include <limits>

#include "handgrad/core/tensor.h"
#include "handgrad/ops/ops.h"
#include "misuse/refusal.h"

// The kernels of operations, which work on views without a tape: each with no memory, and with shapes that do not fit.

namespace handgrad::misuse {
namespace {

using V = View<float>;
using R = Rows<float>;
using H = Heads<float>;

struct Memory {
  Tensor<float> two{Shape{2, 2}}, three{Shape{3, 3}}, heads{Shape{1, 2, 1, 2}}, more_heads{Shape{1, 3, 1, 2}};
  V v2 = two.view(), v3 = three.view();
  R r2 = two.rows(), r3 = three.rows();
  H h = heads.heads(), h3 = more_heads.heads();
  std::span<float> pair{three.data(), 2};
};

template <class Forward, class Backward>
void expect_elementwise(const std::string& name, Forward forward, Backward backward) {
  Memory m;
  EXPECT_REFUSED(ShapeError, name + "_forward: matrices (0, 0) with memory are needed", forward(R{}, R{}));
  EXPECT_REFUSED(ShapeError, name + "_forward: matrices (2, 2) with memory are needed", forward(m.r2, R{}));
  EXPECT_REFUSED(ShapeError, name + "_forward: matrices (2, 2) with memory are needed, got (2, 2), (3, 3)",
                 forward(m.r2, m.r3));
  EXPECT_REFUSED(ShapeError, name + "_backward: matrices", backward(R{}, R{}, R{}));
  EXPECT_REFUSED(ShapeError, name + "_backward: matrices (2, 2) with memory are needed, got (2, 2), (3, 3), (2, 2)",
                 backward(m.r2, m.r3, m.r2));
  EXPECT_REFUSED(ShapeError, name + "_backward: matrices (2, 2) with memory are needed, got (2, 2), (2, 2), (0, 0)",
                 backward(m.r2, m.r2, R{}));
}

TEST(MisuseKernels, elementwise) {
#define HANDGRAD_ELEMENTWISE(op) \
  expect_elementwise(            \
      #op, [](R x, R y) { op##_forward<float>(x, y); }, [](R x, R dy, R dx) { op##_backward<float>(x, dy, dx); })
  HANDGRAD_ELEMENTWISE(relu);
  HANDGRAD_ELEMENTWISE(relu_squared);
  HANDGRAD_ELEMENTWISE(gelu);
  HANDGRAD_ELEMENTWISE(gelu_tanh);
  HANDGRAD_ELEMENTWISE(silu);
#undef HANDGRAD_ELEMENTWISE
  const DropoutMask mask{0.5};
  Memory m;
  EXPECT_REFUSED(ShapeError, "scale_forward: matrices (2, 2) with memory are needed, got (2, 2), (3, 3)",
                 scale_forward<float>(m.r2, 2.0, m.r3));
  EXPECT_REFUSED(ShapeError, "scale_backward: matrices (0, 0) with memory are needed, got (0, 0), (3, 3)",
                 scale_backward<float>(R{}, 2.0, m.r3));
  EXPECT_REFUSED(ShapeError, "dropout_forward: matrices (2, 2) with memory are needed, got (2, 2), (0, 0)",
                 dropout_forward<float>(m.r2, mask, R{}));
  EXPECT_REFUSED(ShapeError, "dropout_backward: matrices (2, 2) with memory are needed, got (2, 2), (3, 3)",
                 dropout_backward<float>(mask, m.r2, m.r3));
  EXPECT_REFUSED(ShapeError, "swiglu_forward: matrices (2, 2) with memory are needed, got (3, 3), (2, 2), (2, 2)",
                 swiglu_forward<float>(m.r3, m.r2, m.r2));
  EXPECT_REFUSED(ShapeError, "swiglu_backward: matrices (2, 2) with memory are needed, got (3, 3)",
                 swiglu_backward<float>(m.r2, m.r2, m.r2, m.r3, R{}));
}

TEST(MisuseKernels, of_any_rank) {
  Memory m;
  EXPECT_REFUSED(ShapeError, "add_forward: values () with memory are needed, got no ()",
                 add_forward<float>(V{}, V{}, V{}));
  EXPECT_REFUSED(ShapeError, "add_forward: a value that broadcasts to (2, 2) is needed, got no ()",
                 add_forward<float>(m.v2, V{}, m.v2));
  EXPECT_REFUSED(ShapeError, "add_forward: extents must be equal or 1, got (3, 3) and (2, 2)",
                 add_forward<float>(m.v3, m.v2, m.v2));
  EXPECT_REFUSED(ShapeError, "add_backward: extents must be equal or 1, got (3, 3) and (2, 2)",
                 add_backward<float>(m.v2, m.v3, V{}));
  EXPECT_REFUSED(ShapeError, "mul_forward: extents must be equal or 1, got (3, 3) and (2, 2)",
                 mul_forward<float>(m.v2, m.v3, m.v2));
  EXPECT_REFUSED(ShapeError, "mul_backward: values (2, 2) with memory are needed, got (3, 3)",
                 mul_backward<float>(m.v2, m.v2, m.v2, m.v3, V{}));
  EXPECT_REFUSED(ShapeError, "contiguous_forward: values (2, 2) with memory are needed, got (3, 3), (2, 2)",
                 contiguous_forward<float>(m.v3, m.v2));
  EXPECT_REFUSED(ShapeError, "contiguous_backward: values () with memory are needed, got no (), no ()",
                 contiguous_backward<float>(V{}, V{}));
  float y = 0;
  EXPECT_REFUSED(ShapeError, "sum_forward: values () with memory are needed, got no ()", sum_forward<float>(V{}, y));
  EXPECT_REFUSED(ShapeError, "sum_backward: values () with memory are needed, got no ()", sum_backward<float>(y, V{}));
  EXPECT_REFUSED(ShapeError, "mean_forward: values () with memory are needed, got no ()", mean_forward<float>(V{}, y));
  EXPECT_REFUSED(ShapeError, "mean_backward: values () with memory are needed, got no ()",
                 mean_backward<float>(y, V{}));
  EXPECT_REFUSED(ShapeError, "softmax_forward: values (2, 2) with memory are needed, got (3, 3), (2, 2)",
                 softmax_forward<float>(m.v3, m.v2));
  EXPECT_REFUSED(ShapeError, "softmax_backward: values (2, 2) with memory are needed, got (2, 2), (3, 3), (2, 2)",
                 softmax_backward<float>(m.v2, m.v3, m.v2));
  EXPECT_REFUSED(ShapeError, "log_softmax_forward: values () with memory are needed, got no (), no ()",
                 log_softmax_forward<float>(V{}, V{}));
  EXPECT_REFUSED(ShapeError, "log_softmax_backward: values () with memory are needed, got (2, 2), (2, 2), no ()",
                 log_softmax_backward<float>(m.v2, m.v2, V{}));
  EXPECT_REFUSED(ShapeError, "masked_fill_forward: a value that broadcasts to (2, 2) is needed, got no ()",
                 masked_fill_forward<float>(m.v2, MaskRef{}, 0.0, m.v2));
  EXPECT_REFUSED(ShapeError, "masked_fill_backward: a value that broadcasts to (2, 2) is needed, got no ()",
                 masked_fill_backward<float>(MaskRef{}, m.v2, m.v2));
  EXPECT_REFUSED(ShapeError, "concat_forward: values (2, 2) with memory are needed, got (3, 3), (2, 2)",
                 concat_forward<float>(m.v2, m.v3, {m.v2, m.v2}));
  EXPECT_REFUSED(ShapeError, "concat_backward: values (2, 2) with memory are needed, got (3, 3)",
                 concat_backward<float>({m.v2, m.v2}, m.v3, V{}));
}

TEST(MisuseKernels, products) {
  Memory m;
  EXPECT_REFUSED(ShapeError, "matmul: (..., M, K) and (..., K, N) are needed, got (2, 2) and (3, 3)",
                 matmul_forward<float>(m.v2, m.v3, 1.0, m.v2));
  EXPECT_REFUSED(ShapeError, "matmul_forward: values (2, 2) with memory are needed, got (3, 3)",
                 matmul_forward<float>(m.v2, m.v2, 1.0, m.v3));
  EXPECT_REFUSED(ShapeError, "matmul_forward: values () with memory are needed, got no ()",
                 matmul_forward<float>(V{}, V{}, 1.0, V{}));
  EXPECT_REFUSED(ShapeError, "matmul_backward: values (2, 2) with memory are needed, got (3, 3)",
                 matmul_backward<float>(m.v2, m.v2, 1.0, m.v2, m.v3, V{}));
  EXPECT_REFUSED(ShapeError, "linear_forward: matrices (2, 2) with memory are needed, got (3, 3)",
                 linear_forward<float>(m.r2, m.r3, {}, 1, m.r2));
  EXPECT_REFUSED(ShapeError, "linear_forward: matrices (0, 0) with memory are needed, got (0, 0)",
                 linear_forward<float>(R{}, R{}, {}, 1, R{}));
  EXPECT_REFUSED(RangeError, "linear_forward: block must be at least 1, got 0",
                 linear_forward<float>(m.r2, m.r2, {}, 0, m.r2));
  EXPECT_REFUSED(ShapeError, "linear_backward: matrices (2, 2) with memory are needed, got (3, 3)",
                 linear_backward<float>(m.r2, m.r2, 1, m.r2, {m.r3, R{}, {}}));
  EXPECT_REFUSED(ShapeError, "linear_backward: matrices (2, 2) with memory are needed, got (0, 0)",
                 linear_backward<float>(m.r2, R{}, 1, m.r2, {m.r2, R{}, {}}));
  EXPECT_REFUSED(ShapeError, "linear_backward: matrices (2, 2) with memory are needed, got (3, 3)",
                 linear_backward<float>(m.r2, m.r2, 1, m.r2, {R{}, m.r3, {}}));
  EXPECT_REFUSED(ShapeError, "matmul_backward: values (2, 2) with memory are needed, got (3, 3)",
                 matmul_backward<float>(m.v2, m.v2, 1.0, m.v2, V{}, m.v3));
  const LayerNormStatistics<float> statistics{m.pair, m.pair};
  EXPECT_REFUSED(ShapeError, "layer_norm_forward: matrices (2, 2) with memory are needed, got (2, 2), (3, 3)",
                 layer_norm_forward<float>(m.r2, m.pair, {}, 0.0, statistics, m.r3));
  EXPECT_REFUSED(ShapeError, "layer_norm_forward: weight of 2 elements are needed, got 0",
                 layer_norm_forward<float>(m.r2, {}, {}, 0.0, statistics, m.r2));
  EXPECT_REFUSED(ShapeError, "layer_norm_backward: means of 2 elements are needed, got 0",
                 layer_norm_backward<float>(m.r2, m.pair, {}, 1, m.r2, {m.r2, {}, {}}));
  EXPECT_REFUSED(ShapeError, "layer_norm_backward: matrices (2, 2) with memory are needed, got (2, 2), (3, 3)",
                 layer_norm_backward<float>(m.r2, m.pair, statistics, 1, m.r3, {m.r2, {}, {}}));
  EXPECT_REFUSED(RangeError, "layer_norm_backward: block must be at least 1, got 0",
                 layer_norm_backward<float>(m.r2, m.pair, statistics, 0, m.r2, {m.r2, {}, {}}));
  EXPECT_REFUSED(ShapeError, "layer_norm_backward: dbias of 2 elements are needed, got 1",
                 layer_norm_backward<float>(m.r2, m.pair, statistics, 1, m.r2, {m.r2, {}, m.pair.first(1)}));
  EXPECT_REFUSED(ShapeError, "linear_forward: bias of 2 elements are needed, got 1",
                 linear_forward<float>(m.r2, m.r2, m.pair.first(1), 1, m.r2));
  EXPECT_REFUSED(ShapeError, "rms_norm_forward: values (2, 2) with memory are needed, got (2, 2), (3, 3)",
                 rms_norm_forward<float>(m.v2, m.pair, 0.0, m.pair, m.v3));
  EXPECT_REFUSED(ShapeError, "rms_norm_forward: inverse of 2 elements are needed, got 0",
                 rms_norm_forward<float>(m.v2, m.pair, 0.0, {}, m.v2));
  EXPECT_REFUSED(ShapeError, "rms_norm_backward: values (2, 2) with memory are needed, got (2, 2), (3, 3)",
                 rms_norm_backward<float>({m.v2, m.pair, m.pair}, 1, m.v3, m.v2, {}));
}

TEST(MisuseKernels, tables_and_losses) {
  Memory m;
  const std::vector<TokenId> ids{0, 1}, large{0, 9};
  EXPECT_REFUSED(RangeError, "embedding: id 9 at index 1 is outside [0, 2)",
                 embedding_forward<float, TokenId>(m.r2, large, m.r2));
  EXPECT_REFUSED(ShapeError, "embedding_forward: matrices (2, 2) with memory are needed, got (0, 0)",
                 embedding_forward<float, TokenId>(m.r2, ids, R{}));
  EXPECT_REFUSED(ShapeError, "embedding_forward: matrices (0, 2) with memory are needed, got (2, 2)",
                 embedding_forward<float, TokenId>(m.r2, {}, m.r2));
  EXPECT_REFUSED(RangeError, "embedding: id 9 at index 1 is outside [0, 2)",
                 embedding_backward<float, TokenId>(large, m.r2, m.r2));
  const SoftmaxStatistics<float> statistics{m.pair, m.pair};
  EXPECT_REFUSED(ShapeError, "cross_entropy_forward: one target per row is needed, got 0 for 2 rows",
                 cross_entropy_forward<float>(m.r2, {}, {}, statistics, m.pair));
  EXPECT_REFUSED(ShapeError, "cross_entropy_forward: row maxima of 2 elements are needed, got 0",
                 cross_entropy_forward<float>(m.r2, ids, {}, {}, m.pair));
  EXPECT_REFUSED(ShapeError, "cross_entropy_backward: matrices (2, 2) with memory are needed, got (2, 2), (3, 3)",
                 cross_entropy_backward<float>(m.r2, ids, {}, statistics, 1.0f, m.r3));
  const LossHeadInputs<float> in{m.r2, m.r2, ids, 2};
  const LossHeadMemory<float> memory{m.r2, true, statistics, m.pair};
  EXPECT_REFUSED(ShapeError, "linear_cross_entropy_forward: matrices (2, 2) with memory are needed, got (0, 0)",
                 linear_cross_entropy_forward<float>(in, {}, true, {}));
  EXPECT_REFUSED(ShapeError, "linear_cross_entropy_forward: losses of 2 elements are needed, got 0",
                 linear_cross_entropy_forward<float>(in, {}, true, {m.r2, true, statistics, {}}));
  EXPECT_REFUSED(RangeError, "linear_cross_entropy_forward: block must be at least 1, got 0",
                 linear_cross_entropy_forward<float>({m.r2, m.r2, ids, 0}, {}, true, memory));
  EXPECT_REFUSED(ShapeError, "linear_cross_entropy_backward: matrices (2, 2) with memory are needed, got (3, 3)",
                 linear_cross_entropy_backward<float>(in, {}, memory, 1.0f, {m.r3, R{}}));
}

TEST(MisuseKernels, heads) {
  Memory m;
  const std::vector<Index> places{0, 1, 2};
  RopeTable<float> table(2, 1e4, RopePairing::adjacent);
  table.extend(3);
  EXPECT_REFUSED(ShapeError, "rope_forward: heads of one shape are needed, got (1, 2, 1, 2) and (0, 0, 0, 0)",
                 rope_forward<float>(m.h, {places.data(), 1, 2}, table, H{}));
  EXPECT_REFUSED(ShapeError, "rope: positions are needed, got none", rope_forward<float>(m.h, {}, table, m.h));
  EXPECT_REFUSED(ShapeError, "rope_backward: heads of one shape are needed, got (1, 2, 1, 2) and (1, 3, 1, 2)",
                 rope_backward<float>(m.h, {places.data(), 1, 2}, table, m.h3));
  const AttentionInputs<float> in{m.h, m.h, m.h};
  const SoftmaxStatistics<float> statistics{m.pair, m.pair};
  EXPECT_REFUSED(ShapeError, "causal_attention_forward: memory for every array is needed, got a null pointer",
                 causal_attention_forward<float>({}, {}, statistics, m.h));
  EXPECT_REFUSED(ShapeError, "causal_attention_forward: heads (1, 2, 1, 2) with memory are needed, got (1, 3, 1, 2)",
                 causal_attention_forward<float>(in, {}, statistics, m.h3));
  EXPECT_REFUSED(ShapeError, "causal_attention_forward: row maxima of 2 elements are needed, got 0",
                 causal_attention_forward<float>(in, {}, {}, m.h));
  EXPECT_REFUSED(ShapeError, "causal_attention_forward: there must be one value per key, got 3 keys and 2 values",
                 causal_attention_forward<float>({m.h, m.h3, m.h}, {}, statistics, m.h));
  const AttentionSaved<float> saved{m.h, statistics};
  EXPECT_REFUSED(ShapeError, "causal_attention_backward: heads (1, 2, 1, 2) with memory are needed, got (0, 0, 0, 0)",
                 causal_attention_backward<float>(in, {}, saved, H{}, {}));
  EXPECT_REFUSED(ShapeError, "causal_attention_backward: heads (1, 2, 1, 2) with memory are needed, got (1, 3, 1, 2)",
                 causal_attention_backward<float>(in, {}, saved, m.h, {m.h3, H{}, H{}}));
  EXPECT_REFUSED(ShapeError, "causal_attention_backward: heads (1, 2, 1, 2) with memory are needed, got (1, 3, 1, 2)",
                 causal_attention_backward<float>(in, {}, saved, m.h, {H{}, m.h3, H{}}));
  EXPECT_REFUSED(ShapeError, "causal_attention_backward: heads (1, 2, 1, 2) with memory are needed, got (1, 3, 1, 2)",
                 causal_attention_backward<float>(in, {}, saved, m.h, {H{}, H{}, m.h3}));
  EXPECT_REFUSED(ShapeError, "causal_attention_backward: log-sums of 2 elements are needed, got 0",
                 causal_attention_backward<float>(in, {}, {m.h, {m.pair, {}}}, m.h, {}));
}

}  // namespace
}  // namespace handgrad::misuse
