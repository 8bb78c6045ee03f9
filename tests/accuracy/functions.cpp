#include <numbers>

#include "accuracy/error_meter.h"
#include "core/math.h"
#include "handgrad/ops/ops.h"

namespace handgrad::test {
namespace {

Wide sigma(Wide x) { return 1 / (1 + std::exp(-x)); }
Wide phi(Wide x) { return std::exp(-x * x / 2) / std::sqrt(2 * std::numbers::pi_v<Wide>); }
Wide cdf(Wide x) { return std::erfc(-x / std::numbers::sqrt2_v<Wide>) / 2; }
// x (1 + tanh u) / 2 = x sigma(2u): twice the argument of the tanh form of GELU, and its slope.
Wide tanh_argument(Wide x) { return 2 * std::sqrt(2 / std::numbers::pi_v<Wide>) * (x + 0.044715L * x * x * x); }
Wide tanh_slope(Wide x) { return 2 * std::sqrt(2 / std::numbers::pi_v<Wide>) * (1 + 3 * 0.044715L * x * x); }

// Half of the inputs have any scale, half are in the range where the function is curved.
double wide_or_near(HardInputs& h, double reach) {
  return h.uniform(0, 1) < 0.5 ? h.of_any_scale(-126, 127) : h.uniform(-reach, reach);
}

template <class S>
using Run = std::function<void(Rows<const S>, Rows<S>)>;

// One function: its reference and its code in float and double.
struct Function {
  const char* name;
  double reach;                     // it is curved for |x| up to this
  std::function<Wide(Wide)> exact;  // the value
  std::function<Wide(Wide)> terms;  // sum of absolute terms; empty: errors are counted in ulps
  Run<float> run_float;
  Run<double> run_double;
};

template <class S>
ErrorMeter<S> measure(const Function& f, const Run<S>& run, std::uint32_t stream, Index inputs) {
  HardInputs hard(stream);
  const auto x = hard.elements<S>(inputs, [&](HardInputs& h) { return wide_or_near(h, f.reach); });
  Tensor<S> y(x.shape());
  run(x.rows(), y.rows());
  ErrorMeter<S> meter;
  for (Index i = 0; i < inputs; ++i) {
    const Wide exact = f.exact(x[i]);
    // A flushed tail may have been multiplied by up to x^3. Beyond 1000 it is 0 in every format, so nothing is flushed.
    const Wide size = std::min(1000.0L, std::abs(static_cast<Wide>(x[i])));
    if (f.terms) {
      meter.in_terms(y[i], exact, f.terms(x[i]), size * size * size);
    } else {
      meter.in_ulps(y[i], exact, size);
    }
  }
  return meter;
}

template <class S, class F>
Run<S> leaf(F f) {
  return [f](Rows<const S> x, Rows<S> y) {
    for (Index i = 0; i < x.cols; ++i) y.data[i] = f(x.data[i]);
  };
}

template <class S, class Backward>
Run<S> slope(Backward backward) {
  return [backward](Rows<const S> x, Rows<S> dx) {
    Tensor<S> ones({1, x.cols});
    ones.fill(S(1));
    backward(x, ones.rows(), dx);
  };
}

std::vector<Function> functions() {
  const auto relu_of = [](Wide x) { return x < 0 ? 0 : x; };
  const auto square = [](Wide x) { return x < 0 ? 0 : x * x; };
  const auto gelu_of = [](Wide x) { return x * cdf(x); };
  const auto gelu_tanh_of = [](Wide x) { return x * sigma(tanh_argument(x)); };
  const auto silu_of = [](Wide x) { return x * sigma(x); };
  const auto gelu_slope = [](Wide x) { return cdf(x) + x * phi(x); };
  const auto silu_slope = [](Wide x) { return sigma(x) + x * sigma(x) * sigma(-x); };
  const auto gelu_tanh_slope = [](Wide x) {
    const Wide u = tanh_argument(x);
    return sigma(u) + x * sigma(u) * sigma(-u) * tanh_slope(x);
  };
  return {
      {"exp",
       100,
       [](Wide x) { return std::exp(x); },
       {},
       leaf<float>([](float x) { return exp_of(x); }),
       leaf<double>([](double x) { return exp_of(x); })},
      {"sigmoid", 100, sigma, {}, leaf<float>(sigmoid<float>), leaf<double>(sigmoid<double>)},
      {"normal_cdf", 13, cdf, {}, leaf<float>(normal_cdf<float>), leaf<double>(normal_cdf<double>)},
      {"normal_density", 13, phi, {}, leaf<float>(normal_density<float>), leaf<double>(normal_density<double>)},
      {"relu", 4, relu_of, {}, relu_forward<float>, relu_forward<double>},
      {"relu_squared", 4, square, {}, relu_squared_forward<float>, relu_squared_forward<double>},
      {"gelu", 13, gelu_of, {}, gelu_forward<float>, gelu_forward<double>},
      {"gelu_tanh", 8, gelu_tanh_of, {}, gelu_tanh_forward<float>, gelu_tanh_forward<double>},
      {"silu", 90, silu_of, {}, silu_forward<float>, silu_forward<double>},
      {"relu_squared backward",
       4,
       [](Wide x) { return x < 0 ? 0 : 2 * x; },
       {},
       slope<float>(relu_squared_backward<float>),
       slope<double>(relu_squared_backward<double>)},
      {"gelu backward", 13, gelu_slope, [](Wide x) { return cdf(x) + std::abs(x) * phi(x); },
       slope<float>(gelu_backward<float>), slope<double>(gelu_backward<double>)},
      {"gelu_tanh backward", 8, gelu_tanh_slope,
       [](Wide x) {
         const Wide u = tanh_argument(x);
         return sigma(u) + std::abs(x) * sigma(u) * sigma(-u) * tanh_slope(x);
       },
       slope<float>(gelu_tanh_backward<float>), slope<double>(gelu_tanh_backward<double>)},
      {"silu backward", 90, silu_slope, [](Wide x) { return sigma(x) + std::abs(x) * sigma(x) * sigma(-x); },
       slope<float>(silu_backward<float>), slope<double>(silu_backward<double>)},
  };
}

template <class S>
void measure_pairs(Index inputs, ErrorMeter<S>& sum, ErrorMeter<S>& product, ErrorMeter<S>& gated) {
  HardInputs hard(100);
  const auto draw = [](HardInputs& h) { return wide_or_near(h, 80); };
  const auto a = hard.elements<S>(inputs, draw), b = hard.elements<S>(inputs, draw);
  Tensor<S> y(a.shape());
  const auto for_each = [&](auto&& take) {
    for (Index i = 0; i < inputs; ++i) take(y[i], static_cast<Wide>(a[i]), static_cast<Wide>(b[i]));
  };
  add_forward<S>(a.view(), b.view(), y.view());
  for_each([&](S found, Wide p, Wide q) { sum.in_terms(found, p + q, std::abs(p) + std::abs(q)); });
  mul_forward<S>(a.view(), b.view(), y.view());
  for_each([&](S found, Wide p, Wide q) { product.in_ulps(found, p * q); });
  swiglu_forward<S>(a.rows(), b.rows(), y.rows());
  for_each([&](S found, Wide p, Wide q) {
    gated.in_ulps(found, p * sigma(p) * q, std::abs(q) * std::max(1.0L, std::abs(p)));
  });
}

Accuracy row(const char* name, const char* unit, const ErrorMeter<float>& f, const ErrorMeter<double>& d) {
  return {name, unit, f.worst(), f.mean(), d.worst(), d.mean(), f.count()};
}

}  // namespace

std::vector<Accuracy> accuracy_of_functions(Index inputs) {
  std::vector<Accuracy> table;
  std::uint32_t stream = 0;
  for (const Function& f : functions()) {
    const auto narrow = measure<float>(f, f.run_float, stream, inputs);
    const auto wide = measure<double>(f, f.run_double, stream++, inputs);
    table.push_back(row(f.name, f.terms ? "eps x terms" : "ulp", narrow, wide));
  }
  ErrorMeter<float> sum, product, gated;
  ErrorMeter<double> wide_sum, wide_product, wide_gated;
  measure_pairs(inputs, sum, product, gated);
  measure_pairs(inputs, wide_sum, wide_product, wide_gated);
  table.push_back(row("add", "eps x terms", sum, wide_sum));
  table.push_back(row("mul", "ulp", product, wide_product));
  table.push_back(row("swiglu", "ulp", gated, wide_gated));
  return table;
}

}  // namespace handgrad::test
