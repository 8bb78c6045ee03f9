#include <algorithm>
#include <numeric>

#include "accuracy/error_meter.h"
#include "handgrad/ops/ops.h"
#include "handgrad/optim/optimizer.h"

namespace handgrad::test {
namespace {

// Odd, so that the last tile and the last vector are incomplete.
constexpr Index width = 193;

using WideRow = std::vector<Wide>;

template <class S>
WideRow wide(const S* x, Index n) {
  return {x, x + n};
}
Wide total(const WideRow& x) { return std::accumulate(x.begin(), x.end(), 0.0L); }
template <class F>
Wide sum_over(std::size_t n, F&& f) {
  Wide sum = 0;
  for (std::size_t i = 0; i < n; ++i) sum += f(i);
  return sum;
}
Wide largest(const WideRow& x) { return *std::max_element(x.begin(), x.end()); }

template <class S>
ErrorMeter<S> sums(Index rows, HardInputs& hard) {
  const auto x = hard.rows<S>(rows, width, -60, 60, 20);
  ErrorMeter<S> meter;
  for (Index r = 0; r < rows; ++r) {
    const View<const S> row{x.data() + r * width, {width}, contiguous_strides({width})};
    S y{};
    sum_forward<S>(row, y);
    const WideRow w = wide(row.data, width);
    meter.in_terms(y, total(w), sum_over(w.size(), [&](auto i) { return std::abs(w[i]); }));
  }
  return meter;
}

template <class S>
ErrorMeter<S> products(Index rows, HardInputs& hard) {
  const auto x = hard.rows<S>(rows, width, -30, 30, 10), weight = hard.rows<S>(67, width, -20, 20, 10);
  Tensor<S> y({rows, 67});
  linear_forward<S>(x.rows(), weight.rows(), {}, 1, y.rows());
  ErrorMeter<S> meter;
  for (Index r = 0; r < rows; ++r) {
    for (Index o = 0; o < 67; ++o) {
      const WideRow a = wide(x.rows().row(r), width), b = wide(weight.rows().row(o), width);
      meter.in_terms(y[r * 67 + o], sum_over(a.size(), [&](auto i) { return a[i] * b[i]; }),
                     sum_over(a.size(), [&](auto i) { return std::abs(a[i] * b[i]); }));
    }
  }
  return meter;
}

// Logits of any scale up to hundreds. A rounding of x - m is magnified by its own size.
template <class S>
Tensor<S> logits(Index rows, HardInputs& hard) {
  return hard.rows<S>(rows, width, -20, 5, 4);
}

template <class S>
ErrorMeter<S> softmaxes(Index rows, HardInputs& hard) {
  const auto x = logits<S>(rows, hard);
  Tensor<S> y(x.shape());
  softmax_forward<S>(x.view(), y.view());
  ErrorMeter<S> meter;
  for (Index r = 0; r < rows; ++r) {
    const WideRow w = wide(x.rows().row(r), width);
    const Wide m = largest(w), sum = sum_over(w.size(), [&](auto i) { return std::exp(w[i] - m); });
    for (std::size_t i = 0; i < w.size(); ++i) {
      const Wide exact = std::exp(w[i] - m) / sum;
      meter.in_terms(y.rows().row(r)[i], exact, exact * (1 + m - w[i]));
    }
  }
  return meter;
}

template <class S>
ErrorMeter<S> softmax_slopes(Index rows, HardInputs& hard) {
  const auto x = logits<S>(rows, hard), dy = hard.rows<S>(rows, width, -30, 30, 10);
  Tensor<S> y(x.shape()), dx(x.shape());
  softmax_forward<S>(x.view(), y.view());
  softmax_backward<S>(y.view(), dy.view(), dx.view());
  ErrorMeter<S> meter;
  for (Index r = 0; r < rows; ++r) {
    const WideRow p = wide(y.rows().row(r), width), d = wide(dy.rows().row(r), width);
    const Wide inner = sum_over(p.size(), [&](auto i) { return p[i] * d[i]; });
    const Wide size = sum_over(p.size(), [&](auto i) { return std::abs(p[i] * d[i]); });
    for (std::size_t i = 0; i < p.size(); ++i) {
      meter.in_terms(dx.rows().row(r)[i], p[i] * (d[i] - inner), p[i] * (std::abs(d[i]) + size), size);
    }
  }
  return meter;
}

template <class S>
ErrorMeter<S> log_softmaxes(Index rows, HardInputs& hard) {
  const auto x = logits<S>(rows, hard);
  Tensor<S> y(x.shape());
  log_softmax_forward<S>(x.view(), y.view());
  ErrorMeter<S> meter;
  for (Index r = 0; r < rows; ++r) {
    const WideRow w = wide(x.rows().row(r), width);
    const Wide m = largest(w), log_sum = std::log(sum_over(w.size(), [&](auto i) { return std::exp(w[i] - m); }));
    for (std::size_t i = 0; i < w.size(); ++i) {
      meter.in_terms(y.rows().row(r)[i], w[i] - m - log_sum, std::max(1.0L, m - w[i] + log_sum));
    }
  }
  return meter;
}

template <class S>
ErrorMeter<S> losses(Index rows, HardInputs& hard) {
  const auto x = logits<S>(rows, hard);
  ErrorMeter<S> meter;
  for (Index r = 0; r < rows; ++r) {
    const WideRow w = wide(x.rows().row(r), width);
    const TokenId target = static_cast<TokenId>(hard.uniform(0, static_cast<double>(width)));
    S row_max, own_log_sum, loss;
    cross_entropy_forward<S>(x.rows().slice(r, 1), std::span(&target, 1), {},
                             {std::span(&row_max, 1), std::span(&own_log_sum, 1)}, std::span(&loss, 1));
    const Wide m = largest(w), log_sum = std::log(sum_over(w.size(), [&](auto i) { return std::exp(w[i] - m); }));
    const Wide gap = m - w[static_cast<std::size_t>(target)];
    meter.in_terms(loss, log_sum + gap, std::max(1.0L, log_sum + gap));
  }
  return meter;
}

// The forward pass, and the gradient of x from its saved statistics.
template <class S>
void layer_norms(Index rows, HardInputs& hard, ErrorMeter<S>& forward, ErrorMeter<S>& backward) {
  const double eps = 1e-5;
  const auto x = hard.rows<S>(rows, width, -20, 40, 10), dy = hard.rows<S>(rows, width, -20, 20, 10);
  const auto weight = hard.rows<S>(1, width, 0, 1, 6), bias = hard.rows<S>(1, width, 0, 1, 6);
  Tensor<S> y(x.shape()), dx(x.shape()), means({rows}), inverses({rows});
  const LayerNormStatistics<S> statistics{means.span(), inverses.span()};
  layer_norm_forward<S>(x.rows(), weight.span(), bias.span(), eps, statistics, y.rows());
  layer_norm_backward<S>(x.rows(), weight.span(), statistics, 1, dy.rows(), {dx.rows()});
  const WideRow w = wide(weight.data(), width), b = wide(bias.data(), width);
  for (Index r = 0; r < rows; ++r) {
    const WideRow in = wide(x.rows().row(r), width), up = wide(dy.rows().row(r), width);
    const auto n = static_cast<Wide>(width);
    const Wide mean = total(in) / n, size = sum_over(in.size(), [&](auto i) { return std::abs(in[i]); }) / n;
    const Wide variance = sum_over(in.size(), [&](auto i) { return (in[i] - mean) * (in[i] - mean); }) / n;
    const Wide inverse = 1 / std::sqrt(variance + static_cast<Wide>(eps));
    const Wide m = means[r], s = inverses[r];
    const auto g = [&](std::size_t i) { return up[i] * w[i]; };
    const auto h = [&](std::size_t i) { return (in[i] - m) * s; };
    const Wide mean_g = sum_over(in.size(), g) / n;
    const Wide mean_gh = sum_over(in.size(), [&](auto i) { return g(i) * h(i); }) / n;
    const Wide size_g = sum_over(in.size(), [&](auto i) { return std::abs(g(i)); }) / n;
    const Wide size_gh =
        sum_over(in.size(), [&](auto i) { return std::abs(g(i)) * (std::abs(in[i]) + std::abs(m)) * s; }) / n;
    for (std::size_t i = 0; i < in.size(); ++i) {
      forward.in_terms(y.rows().row(r)[i], (in[i] - mean) * inverse * w[i] + b[i],
                       (std::abs(in[i]) + size) * inverse * std::abs(w[i]) + std::abs(b[i]));
      backward.in_terms(dx.rows().row(r)[i], s * (g(i) - mean_g - h(i) * mean_gh),
                        s * (std::abs(g(i)) + size_g + (std::abs(in[i]) + std::abs(m)) * s * size_gh));
    }
  }
}

template <class S>
void rms_norms(Index rows, HardInputs& hard, ErrorMeter<S>& forward, ErrorMeter<S>& backward) {
  const double eps = 1e-5;
  const auto x = hard.rows<S>(rows, width, -20, 40, 10), dy = hard.rows<S>(rows, width, -20, 20, 10);
  const auto weight = hard.rows<S>(1, width, 0, 1, 6);
  Tensor<S> y(x.shape()), dx(x.shape()), inverses({rows});
  rms_norm_forward<S>(x.view(), weight.span(), eps, inverses.span(), y.view());
  rms_norm_backward<S>({x.view(), weight.span(), inverses.span()}, 1, dy.view(), dx.view(), {});
  const WideRow w = wide(weight.data(), width);
  const auto n = static_cast<Wide>(width);
  for (Index r = 0; r < rows; ++r) {
    const WideRow in = wide(x.rows().row(r), width), up = wide(dy.rows().row(r), width);
    const Wide square = sum_over(in.size(), [&](auto i) { return in[i] * in[i]; }) / n;
    const Wide inverse = 1 / std::sqrt(square + static_cast<Wide>(eps)), s = inverses[r];
    const auto g = [&](std::size_t i) { return up[i] * w[i]; };
    const Wide mean_gh = sum_over(in.size(), [&](auto i) { return g(i) * in[i] * s; }) / n;
    const Wide size_gh = sum_over(in.size(), [&](auto i) { return std::abs(g(i) * in[i] * s); }) / n;
    for (std::size_t i = 0; i < in.size(); ++i) {
      forward.in_ulps(y.rows().row(r)[i], in[i] * inverse * w[i], std::abs(w[i]));
      backward.in_terms(dx.rows().row(r)[i], s * (g(i) - in[i] * s * mean_gh),
                        s * (std::abs(g(i)) + std::abs(in[i] * s) * size_gh));
    }
  }
}

template <class S>
ErrorMeter<S> turns(Index rows, HardInputs& hard) {
  const Index head = 64, heads = 3, most = 4096;
  const auto x = hard.rows<S>(rows, heads * head, -30, 30, 20);
  Tensor<S> y(x.shape());
  std::vector<Index> positions;
  for (Index r = 0; r < rows; ++r) positions.push_back(static_cast<Index>(hard.uniform(0, static_cast<double>(most))));
  RopeTable<S> table(head, 10000.0, RopePairing::adjacent);
  table.extend(most);
  const Shape shape{1, rows, heads, head};
  rope_forward<S>(View<const S>{x.data(), shape, contiguous_strides(shape)}.heads(), {positions.data(), 1, rows}, table,
                  View<S>{y.data(), shape, contiguous_strides(shape)}.heads());
  ErrorMeter<S> meter;
  for (Index r = 0; r < rows; ++r) {
    for (Index i = 0; i < heads * head; i += 2) {
      const Wide a = x[r * heads * head + i], b = x[r * heads * head + i + 1];
      const Wide phi = static_cast<Wide>(positions[static_cast<std::size_t>(r)]) *
                       std::pow(10000.0L, -static_cast<Wide>(i % head) / static_cast<Wide>(head));
      const Wide c = std::cos(phi), s = std::sin(phi);
      // The effect of a rounding error of the angle does not decrease with the cosine.
      const Wide size = std::abs(a) + std::abs(b);
      meter.in_terms(y[r * heads * head + i], a * c - b * s, size);
      meter.in_terms(y[r * heads * head + i + 1], a * s + b * c, size);
    }
  }
  return meter;
}

// Tiled attention of one query to `width` keys: terms are p |v|, magnified by the roundings of a score.
template <class S>
ErrorMeter<S> attentions(Index rows, HardInputs& hard) {
  const Index head = 16;
  const auto q = hard.rows<S>(rows, head, -10, 2, 2), k = hard.rows<S>(width, head, -2, 2, 2),
             v = hard.rows<S>(width, head, -30, 30, 10);
  Tensor<S> y(q.shape()), row_max({rows}), log_sum({rows});
  const Shape queries{1, rows, 1, head}, keys{1, width, 1, head};
  const auto heads = [](const Tensor<S>& x, const Shape& s) {
    return View<const S>{x.data(), s, contiguous_strides(s)}.heads();
  };
  AttentionOptions options;
  options.causal = false;
  causal_attention_forward<S>({heads(q, queries), heads(k, keys), heads(v, keys)}, options,
                              {row_max.span(), log_sum.span()},
                              View<S>{y.data(), queries, contiguous_strides(queries)}.heads());
  ErrorMeter<S> meter;
  const auto n = static_cast<std::size_t>(width);
  for (Index r = 0; r < rows; ++r) {
    WideRow score(n);
    Wide magnified = 0;
    for (Index j = 0; j < width; ++j) {
      Wide s = 0, terms = 0;
      for (Index d = 0; d < head; ++d) {
        const Wide product = static_cast<Wide>(q[r * head + d]) * static_cast<Wide>(k[j * head + d]) / 4;  // sqrt(16)
        s += product;
        terms += std::abs(product);
      }
      score[static_cast<std::size_t>(j)] = s;
      magnified = std::max(magnified, terms);
    }
    const Wide m = largest(score);
    for (Wide& s : score) s = std::exp(s - m);
    const Wide sum = total(score);
    for (Index d = 0; d < head; ++d) {
      const auto term = [&](std::size_t j) {
        return score[j] / sum * static_cast<Wide>(v[static_cast<Index>(j) * head + d]);
      };
      meter.in_terms(y[r * head + d], sum_over(n, term),
                     sum_over(n, [&](auto j) { return std::abs(term(j)); }) * (1 + magnified));
    }
  }
  return meter;
}

// The first update from zero moments: mhat = g, vhat = g^2.
template <class S>
ErrorMeter<S> updates(Index inputs, HardInputs& hard) {
  ParameterStore<S> store;
  store.add("w", {1, inputs});
  store.allocate();
  store.allocate_gradients();
  for (Index i = 0; i < inputs; ++i) {
    store.mutable_values()[i] = static_cast<S>(hard.of_any_scale(-40, 10));
    store.gradients()[i] = static_cast<S>(hard.of_any_scale(-40, 40));
  }
  const auto before = wide(store.values(), inputs), g = wide(store.gradients(), inputs);
  const AdamWOptions options;
  const double lr = 1e-3;
  AdamW<S> optimizer(store, options);
  optimizer.step(store, lr, 1.0);
  ErrorMeter<S> meter;
  for (std::size_t i = 0; i < before.size(); ++i) {
    const Wide step = g[i] / (std::abs(g[i]) + static_cast<Wide>(options.eps));
    const Wide rate = static_cast<Wide>(lr), decay = static_cast<Wide>(options.weight_decay);
    meter.in_terms(store.values()[i], before[i] - rate * (step + decay * before[i]),
                   std::abs(before[i]) * (1 + rate * decay) + rate * std::abs(step), 1e20L);
  }
  return meter;
}

}  // namespace

std::vector<Accuracy> accuracy_of_sums(Index inputs) {
  const Index rows = std::max<Index>(1, inputs / width);
  std::vector<Accuracy> table;
  const auto add = [&](const char* name, const char* unit, const ErrorMeter<float>& f, const ErrorMeter<double>& d) {
    table.push_back({name, unit, f.worst(), f.mean(), d.worst(), d.mean(), f.count()});
  };
  const auto both = [&](const char* name, const char* unit, auto measure, Index count) {
    HardInputs hard(200), same(200);
    add(name, unit, measure(float{}, count, hard), measure(double{}, count, same));
  };
#define HANDGRAD_MEASURE(f) [](auto s, Index n, HardInputs& h) { return f<decltype(s)>(n, h); }
  both("sum", "eps x terms", HANDGRAD_MEASURE(sums), rows);
  both("linear", "eps x terms", HANDGRAD_MEASURE(products), std::max<Index>(1, inputs / 67));
  both("softmax", "eps x y (1 + max - x)", HANDGRAD_MEASURE(softmaxes), rows);
  both("softmax backward", "eps x terms", HANDGRAD_MEASURE(softmax_slopes), rows);
  both("log_softmax", "eps x max(1, terms)", HANDGRAD_MEASURE(log_softmaxes), rows);
  both("cross_entropy of a row", "eps x max(1, terms)", HANDGRAD_MEASURE(losses), rows);
  HardInputs hard(300), same(300);
  ErrorMeter<float> forward, backward, root_forward, root_backward;
  ErrorMeter<double> wide_forward, wide_backward, wide_root_forward, wide_root_backward;
  layer_norms(rows, hard, forward, backward);
  layer_norms(rows, same, wide_forward, wide_backward);
  rms_norms(rows, hard, root_forward, root_backward);
  rms_norms(rows, same, wide_root_forward, wide_root_backward);
  add("layer_norm", "eps x terms", forward, wide_forward);
  add("layer_norm backward", "eps x terms", backward, wide_backward);
  add("rms_norm", "ulp", root_forward, wide_root_forward);
  add("rms_norm backward", "eps x terms", root_backward, wide_root_backward);
  both("rope", "eps x (a + b)", HANDGRAD_MEASURE(turns), rows);
  both("causal_attention", "eps x sum of p v (1 + q k)", HANDGRAD_MEASURE(attentions), rows);
  both("AdamW update", "eps x terms", HANDGRAD_MEASURE(updates), inputs);
#undef HANDGRAD_MEASURE
  return table;
}

}  // namespace handgrad::test
