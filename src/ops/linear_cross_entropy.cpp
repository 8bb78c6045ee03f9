#include "handgrad/ops/linear_cross_entropy.h"

#include <fmt/format.h>

#include "core/instantiate.h"
#include "handgrad/autograd/output.h"
#include "ops/check.h"
#include "ops/loss_rows.h"

namespace handgrad {
namespace {

using gemm::multiply_tiled;
using gemm::Operand;
using gemm::Store;
using gemm::Transpose;

// A slab is a part of one block of sequences, so that its bounds do not depend on the split of a batch. A block of up
// to 512 rows is one slab; longer blocks are split at multiples of 256.
Index slab_size(Index block, const LossOptions& options) {
  if (options.slab_rows > 0) return options.slab_rows;
  return block <= 512 ? block : 256;
}

template <class F>
void for_each_slab(Index rows, Index block, Index slab, F&& f) {
  for (Index first = 0; first < rows; first += block) {
    const Index end = std::min(first + block, rows);
    for (Index begin = first; begin < end; begin += slab) f(begin, std::min(slab, end - begin));
  }
}

template <class S>
Rows<S> slab_of(const LossHeadMemory<S>& memory, Index begin, Index count) {
  return memory.logits.slice(memory.kept ? begin : 0, count);
}

template <class S>
void slab_logits(const LossHeadInputs<S>& in, Index begin, Rows<S> logits) {
  multiply_tiled<S>({in.x.slice(begin, logits.rows)}, {in.weight, Transpose::yes}, S(1), Store::assign, logits, {});
}

// p - q in place of the logits of a slab; 0 where the target is ignored.
template <class S>
void to_differences(const LossHeadInputs<S>& in, const LossOptions& options, Index begin,
                    const SoftmaxStatistics<const S>& statistics, Rows<S> logits) {
  for_each_row(logits.rows, logits.cols, [&](Index r) {
    S* x = logits.row(r);
    const TokenId target = in.targets[begin + r];
    if (target == options.ignore) {
      std::fill(x, x + logits.cols, S(0));
    } else {
      row_gradient<S>(x, logits.cols, target, options.label_smoothing, statistics, begin + r,
                      [x](Index i, S difference) { x[i] = difference; });
    }
  });
}

template <class S>
void check_head(const char* kernel, const LossHeadInputs<S>& in, const LossOptions& options,
                const LossHeadMemory<S>& memory) {
  require_rows(kernel, in.x.rows, in.x.cols, in.x);
  require_rows(kernel, in.weight.rows, in.x.cols, in.weight);
  require_at_least(kernel, "block", in.block, 1);
  check_targets(kernel, in.targets, in.x.rows, in.weight.rows, options);
  const Index held = memory.kept ? in.x.rows : std::min(in.x.rows, slab_size(in.block, options));
  require_rows(kernel, std::max(held, memory.logits.rows), in.weight.rows, memory.logits);
  check_statistics(kernel, memory.statistics, in.x.rows);
}

}  // namespace

template <class S>
void linear_cross_entropy_forward(const LossHeadInputs<S>& in, const LossOptions& options, bool differentiate,
                                  const LossHeadMemory<S>& memory) {
  check_head("linear_cross_entropy_forward", in, options, memory);
  require_size("linear_cross_entropy_forward", "losses", memory.losses.size(), in.x.rows);
  for_each_slab(in.x.rows, in.block, slab_size(in.block, options), [&](Index begin, Index count) {
    const Rows<S> logits = slab_of(memory, begin, count);
    slab_logits(in, begin, logits);
    for_each_row(count, logits.cols, [&](Index r) {
      const TokenId target = in.targets[begin + r];
      memory.losses[begin + r] =
          target == options.ignore
              ? S(0)
              : row_loss<S>(logits.row(r), logits.cols, target, options.label_smoothing, memory.statistics, begin + r);
    });
    if (memory.kept && differentiate) to_differences<S>(in, options, begin, memory.statistics, logits);
  });
}

// G = (p - q) / N; dx += dy G W, dW += dy G^T x
template <class S>
void linear_cross_entropy_backward(const LossHeadInputs<S>& in, const LossOptions& options,
                                   const LossHeadMemory<S>& memory, S factor, const LossHeadGradients<S>& gradients) {
  check_head("linear_cross_entropy_backward", in, options, memory);
  if (gradients.dx) require_rows("linear_cross_entropy_backward", in.x.rows, in.x.cols, gradients.dx);
  if (gradients.dweight)
    require_rows("linear_cross_entropy_backward", in.weight.rows, in.weight.cols, gradients.dweight);
  for_each_slab(in.x.rows, in.block, slab_size(in.block, options), [&](Index begin, Index count) {
    const Rows<S> differences = slab_of(memory, begin, count);
    if (!memory.kept) {
      slab_logits(in, begin, differences);
      to_differences<S>(in, options, begin, memory.statistics, differences);
    }
    const Operand<S> g{differences};
    if (gradients.dx) multiply_tiled<S>(g, {in.weight}, factor, Store::add, gradients.dx.slice(begin, count), {});
    if (gradients.dweight) {
      multiply_tiled<S>({differences, Transpose::yes}, {in.x.slice(begin, count)}, factor, Store::add,
                        gradients.dweight, {});
    }
  });
}

template <class S>
Var<S> linear_cross_entropy(Var<S> x, Var<S> weight, std::span<const TokenId> targets, const LossOptions& options) {
  require_operands("linear_cross_entropy", x, weight);
  require_last_axis("linear_cross_entropy", x.shape());
  if (weight.shape().rank() != 2 || weight.extent(1) != x.extent(-1)) {
    throw ShapeError(fmt::format("linear_cross_entropy: x (..., C) and weight (V, C) are needed, got {} and {}",
                                 x.shape().to_string(), weight.shape().to_string()));
  }
  const Rows<const S> rows = x.rows("linear_cross_entropy");
  const Index classes = weight.extent(0), block = rows_in_block(x.shape());
  check_targets("linear_cross_entropy", targets, rows.rows, classes, options);
  const Index divisor = loss_divisor(targets, options);
  auto y = output("linear_cross_entropy", Shape{}, x, weight);
  const Index all = checked_product(rows.rows, classes, "logits");
  const bool keep = x.graph().recording() && all <= options.logits_budget_bytes / static_cast<Index>(sizeof(S));
  const Index held = keep ? rows.rows : std::min(rows.rows, slab_size(block, options));
  const LossHeadMemory<S> memory{{y.scratch(held * classes).data, held, classes, classes},
                                 keep,
                                 {y.scratch(rows.rows), y.scratch(rows.rows)},
                                 y.scratch(rows.rows)};
  linear_cross_entropy_forward<S>({rows, weight.rows("linear_cross_entropy"), targets, block}, options,
                                  x.graph().recording(), memory);
  const auto total = add_losses<S>(memory.losses, targets, block, options);
  *y.data() = divisor > 0 ? from_accumulator<S>(total / static_cast<double>(divisor)) : S(0);
  return y.saves(x, weight, y.copy(targets), options, memory)
      .on_backward([divisor, block](const auto& saved, auto dy, auto dx, auto dweight) {
        const auto& [x_saved, w, targets_saved, options_saved, memory_saved] = saved;
        if (divisor == 0) return;
        const S factor = *dy.data / static_cast<S>(divisor);
        linear_cross_entropy_backward<S>({x_saved.rows(), w.rows(), targets_saved, block}, options_saved, memory_saved,
                                         factor, {dx.rows(), dweight.rows()});
      });
}

#define HANDGRAD_INSTANTIATE(S)                                                                     \
  template void linear_cross_entropy_forward<S>(const LossHeadInputs<S>&, const LossOptions&, bool, \
                                                const LossHeadMemory<S>&);                          \
  template Var<S> linear_cross_entropy<S>(Var<S>, Var<S>, std::span<const TokenId>, const LossOptions&);
HANDGRAD_FOR_ALL_SCALARS(HANDGRAD_INSTANTIATE)
#undef HANDGRAD_INSTANTIATE
#define HANDGRAD_INSTANTIATE(S)                                                                \
  template void linear_cross_entropy_backward<S>(const LossHeadInputs<S>&, const LossOptions&, \
                                                 const LossHeadMemory<S>&, S, const LossHeadGradients<S>&);
HANDGRAD_FOR_REAL_SCALARS(HANDGRAD_INSTANTIATE)
#undef HANDGRAD_INSTANTIATE

}  // namespace handgrad
