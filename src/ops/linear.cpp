#include "handgrad/ops/linear.h"

#include <fmt/format.h>

#include "core/instantiate.h"
#include "core/math.h"
#include "handgrad/autograd/output.h"
#include "handgrad/core/errors.h"
#include "ops/check.h"
#include "ops/elementwise.h"

namespace handgrad {
namespace {

using gemm::multiply_tiled;
using gemm::Store;
using gemm::Transpose;

void check_shapes(const Shape& x, const Shape& weight, const Shape* bias) {
  if (x.rank() < 1 || weight.rank() != 2 || x[-1] != weight[1] ||
      (bias && (bias->rank() != 1 || (*bias)[0] != weight[0]))) {
    throw ShapeError(fmt::format("linear: x (..., in), weight (out, in) and bias (out) are needed, got {}, {} and {}",
                                 x.to_string(), weight.to_string(), bias ? bias->to_string() : "none"));
  }
}

}  // namespace

template <class S>
void linear_forward(Rows<const S> x, Rows<const S> weight, std::span<const S> bias, Index block, Rows<S> y) {
  require_rows("linear_forward", x.rows, x.cols, x);
  require_rows("linear_forward", y.cols, x.cols, weight);
  require_rows("linear_forward", x.rows, weight.rows, y);
  require_at_least("linear_forward", "block", block, 1);
  const bool biased = !bias.empty();
  if (biased) {
    require_size("linear_forward", "bias", bias.size(), y.cols);
    for_each_row(y.rows, y.cols, [&](Index r) { std::copy(bias.begin(), bias.end(), y.row(r)); });
  }
  multiply_tiled<S>({x}, {weight, Transpose::yes}, S(1), biased ? Store::add : Store::assign, y, {.block = block});
}

// dx += dy W, dW += dy^T x, db += sum over rows of dy
template <class S>
void linear_backward(Rows<const S> x, Rows<const S> weight, Index block, Rows<const S> dy,
                     LinearGradients<S> gradients) {
  require_rows("linear_backward", x.rows, x.cols, x);
  require_rows("linear_backward", x.rows, dy.cols, dy);
  require_at_least("linear_backward", "block", block, 1);
  if (gradients.dx) {
    require_rows("linear_backward", dy.cols, x.cols, weight);
    require_rows("linear_backward", x.rows, x.cols, gradients.dx);
  }
  if (gradients.dweight) require_rows("linear_backward", dy.cols, x.cols, gradients.dweight);
  if (gradients.dx) multiply_tiled<S>({dy}, {weight}, S(1), Store::add, gradients.dx, {.block = block});
  if (gradients.dweight)
    multiply_tiled<S>({dy, Transpose::yes}, {x}, S(1), Store::add, gradients.dweight, {.inner = block});
  if (!gradients.dbias.empty()) {
    require_size("linear_backward", "dbias", gradients.dbias.size(), dy.cols);
    add_column_sums<S>(dy.rows, dy.cols, block, gradients.dbias.data(),
                       [dy](Index r) { return [upstream = dy.row(r)](Index c) { return upstream[c]; }; });
  }
}

template <class S>
Var<S> linear(Var<S> x, Var<S> weight, Var<S> bias) {
  require_operands("linear", x, weight);
  check_shapes(x.shape(), weight.shape(), bias ? &bias.shape() : nullptr);
  const std::span<const S> biases = bias ? bias.view().elements("linear") : std::span<const S>{};
  const Index block = rows_in_block(x.shape());
  auto y = output("linear", x.shape().with(-1, weight.extent(0)), x, weight, bias);
  linear_forward<S>(x.rows("linear"), weight.rows("linear"), biases, block, y.rows());
  return y.saves(x, weight).on_backward([block](const auto& saved, auto dy, auto dx, auto dweight, auto dbias) {
    const auto& [x_saved, w] = saved;
    linear_backward<S>(x_saved.rows(), w.rows(), block, dy.rows(), {dx.rows(), dweight.rows(), dbias.elements()});
  });
}

#define HANDGRAD_INSTANTIATE(S)                                                                      \
  template void linear_forward<S>(Rows<const S>, Rows<const S>, std::span<const S>, Index, Rows<S>); \
  template Var<S> linear<S>(Var<S>, Var<S>, Var<S>);
HANDGRAD_FOR_ALL_SCALARS(HANDGRAD_INSTANTIATE)
#undef HANDGRAD_INSTANTIATE
#define HANDGRAD_INSTANTIATE(S) \
  template void linear_backward<S>(Rows<const S>, Rows<const S>, Index, Rows<const S>, LinearGradients<S>);
HANDGRAD_FOR_REAL_SCALARS(HANDGRAD_INSTANTIATE)
#undef HANDGRAD_INSTANTIATE

}  // namespace handgrad
