#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include "core/math.h"
#include "handgrad/autograd/tape.h"
#include "handgrad/ops/causal_attention.h"
#include "handgrad/ops/cross_entropy.h"
#include "handgrad/ops/layer_norm.h"
#include "handgrad/ops/rms_norm.h"
#include "handgrad/ops/softmax.h"
#include "handgrad/verify/audit.h"

// Each case compares the float code, forward and backward, with the same formulas in long double, whose range and
// 64-bit mantissa suffice for every case. The reference sets inputs below FLT_MIN to 0, as the float code may.

namespace handgrad {
namespace {

using Wide = long double;
using Row = std::vector<Wide>;

float flushed(float x) { return std::abs(x) < std::numeric_limits<float>::min() ? 0.0f : x; }

Row widened(const std::vector<float>& x) {
  Row wide;
  for (const float value : x) wide.push_back(static_cast<Wide>(flushed(value)));
  return wide;
}

// The largest |found - expected|, relative to the largest term of the sums; infinite if a found value is not finite.
// The sum itself is not used as the measure, since terms may cancel, as in the gradient of a saturated softmax.
class Distance {
 public:
  // `terms`: the largest term, if it may be larger than the largest sum.
  void compare(const float* found, const Row& expected, Wide terms = 0.0L) {
    Wide largest = terms, worst = 0.0L;
    for (std::size_t i = 0; i < expected.size(); ++i) {
      if (!is_finite(found[i])) finite_ = false;
      largest = std::max(largest, std::abs(expected[i]));
      worst = std::max(worst, std::abs(static_cast<Wide>(found[i]) - expected[i]));
    }
    // A tensor whose largest value is below FLT_MIN may be 0.
    if (largest > static_cast<Wide>(std::numeric_limits<float>::min())) {
      worst_ = std::max(worst_, static_cast<double>(worst / largest));
    }
  }
  double worst() const { return finite_ ? worst_ : HUGE_VAL; }

 private:
  double worst_ = 0.0;
  bool finite_ = true;
};

Row weights_for(std::size_t n) {
  Row w;
  for (std::size_t i = 0; i < n; ++i) w.push_back(0.25L * static_cast<Wide>(static_cast<int>(i * 7 % 5) - 2) + 0.125L);
  return w;
}

Tensor<float> tensor_of(const Shape& shape, const Row& values) {
  Tensor<float> t(shape);
  for (Index i = 0; i < t.size(); ++i) t[i] = static_cast<float>(values[i]);
  return t;
}

Row softmax_of(const Row& x) {
  const Wide m = *std::max_element(x.begin(), x.end());
  Row y;
  Wide sum = 0.0L;
  for (const Wide value : x) {
    y.push_back(std::isinf(m) ? 0.0L : std::exp(value - m));
    sum += y.back();
  }
  for (Wide& value : y) value = sum > 0.0L ? value / sum : 0.0L;
  return y;
}

double softmax_distance(const std::vector<float>& x) {
  const auto n = std::ssize(x);
  const Row y = softmax_of(widened(x)), w = weights_for(x.size());
  Wide inner = 0.0L;
  for (std::size_t i = 0; i < y.size(); ++i) inner += w[i] * y[i];
  Row dx;
  for (std::size_t i = 0; i < y.size(); ++i) dx.push_back(y[i] * (w[i] - inner));
  Tape<float> tape;
  const Var<float> in = tape.variable(Tensor<float>(Shape{1, n}, x)), out = softmax(in);
  tape.backward(out, tensor_of({1, n}, w));
  Distance d;
  d.compare(out.view().data, y);
  d.compare(in.gradient().data, dx, y.empty() ? 0.0L : *std::max_element(y.begin(), y.end()));
  return d.worst();
}

double loss_distance(const std::vector<float>& x, TokenId target) {
  const auto n = std::ssize(x);
  const Row wide = widened(x);
  Row dx = softmax_of(wide);
  const Wide m = *std::max_element(wide.begin(), wide.end());
  Wide sum = 0.0L;
  for (const Wide value : wide) sum += std::exp(value - m);
  const Wide loss = std::log(sum) - (wide[target] - m);
  dx[target] -= 1.0L;
  Tape<float> tape;
  const Var<float> in = tape.variable(Tensor<float>(Shape{1, n}, x));
  const std::vector<TokenId> targets{target};
  const Var<float> out = cross_entropy(in, std::span<const TokenId>(targets));
  tape.backward(out);
  Distance d;
  const float value = out.item();
  // A loss beyond the range of float may be +infinity; its gradient may not.
  if (loss < static_cast<Wide>(std::numeric_limits<float>::max())) d.compare(&value, {loss}, 1.0L);
  d.compare(in.gradient().data, dx, 1.0L);
  return d.worst();
}

double norm_distance(const std::vector<float>& x, bool rms) {
  const auto n = std::ssize(x);
  const Row wide = widened(x), w = weights_for(x.size());
  const Wide count = static_cast<Wide>(n);
  Wide mean = 0.0L, squares = 0.0L;
  for (const Wide value : wide) mean += rms ? 0.0L : value / count;
  for (const Wide value : wide) squares += (value - mean) * (value - mean) / count;
  const Wide scale = 1.0L / std::sqrt(squares + 1e-5L);
  Row y, dx;
  Wide mean_g = 0.0L, mean_gh = 0.0L;
  for (std::size_t i = 0; i < w.size(); ++i) {
    y.push_back((wide[i] - mean) * scale);
    mean_g += rms ? 0.0L : w[i] / count;
    mean_gh += w[i] * y[i] / count;
  }
  for (std::size_t i = 0; i < w.size(); ++i) dx.push_back(scale * (w[i] - mean_g - y[i] * mean_gh));
  Tape<float> tape;
  Tensor<float> ones(Shape{n});
  ones.fill(1.0f);
  const Var<float> in = tape.variable(Tensor<float>(Shape{1, n}, x)), weight = tape.variable(ones);
  const Var<float> out = rms ? rms_norm(in, weight) : layer_norm(in, weight, {});
  tape.backward(out, tensor_of({1, n}, w));
  Distance d;
  d.compare(out.view().data, y);
  d.compare(in.gradient().data, dx);
  return d.worst();
}

// One query of width 1 against keys: scores q k_j, values 1 + j/2; key j is hidden unless visible[j].
double attention_distance(float q, const std::vector<float>& keys, const std::vector<std::uint8_t>& visible) {
  const auto n = std::ssize(keys);
  Row scores;
  for (std::size_t j = 0; j < keys.size(); ++j) {
    scores.push_back(visible[j] ? static_cast<Wide>(flushed(q)) * static_cast<Wide>(flushed(keys[j]))
                                : -static_cast<Wide>(HUGE_VAL));
  }
  const Row p = softmax_of(scores);
  Wide y = 0.0L;
  std::vector<float> values;
  for (Index j = 0; j < n; ++j) {
    values.push_back(1.0f + 0.5f * static_cast<float>(j));
    y += p[j] * static_cast<Wide>(values.back());
  }
  Tape<float> tape;
  const Var<float> vq = tape.variable(Tensor<float>(Shape{1, 1, 1, 1}, {q}));
  const Var<float> vk = tape.variable(Tensor<float>(Shape{1, n, 1, 1}, keys));
  const Var<float> vv = tape.variable(Tensor<float>(Shape{1, n, 1, 1}, values));
  Mask mask(Shape{1, n}, visible);
  AttentionOptions options;
  options.causal = false;
  options.mask = std::as_const(mask).view();
  options.key_tile = 2;
  const Var<float> out = causal_attention(vq, vk, vv, options);
  tape.backward(out, tensor_of({1, 1, 1, 1}, {1.0L}));
  Distance d;
  d.compare(out.view().data, {y});
  d.compare(vv.gradient().data, p);
  Row dk;
  for (std::size_t j = 0; j < keys.size(); ++j) {
    dk.push_back(p[j] * (static_cast<Wide>(values[j]) - y) * static_cast<Wide>(flushed(q)));
  }
  const Wide largest_p = *std::max_element(p.begin(), p.end());
  d.compare(vk.gradient().data, dk,
            largest_p * static_cast<Wide>(values.back()) * std::abs(static_cast<Wide>(flushed(q))));
  return d.worst();
}

struct Case {
  const char* name;
  double limit;
  const std::vector<double>& magnitudes;
  std::function<double(double)> distance;  // as a function of the magnitude
};

AuditRow worst_over(const Case& c) {
  AuditRow row{"stability", c.name, 0.0, c.limit, ""};
  for (const double magnitude : c.magnitudes) {
    const double distance = c.distance(magnitude);
    if (!(distance <= row.error) || row.where.empty()) {
      row.error = distance;
      row.where = fmt::format("at {:.1e}", magnitude);
    }
  }
  return row;
}

}  // namespace

AuditReport audit_stability() {
  // The rounding error of a score s is up to s 2^-24, and so is the relative error of exp(s). The limits of attention
  // allow for it.
  const auto f = [](double x) { return static_cast<float>(x); };
  const std::vector<double> logits{0.0,  1e-45, 1e-40, 1e-38, 1e-30, 1e-10, 1e-3, 1.0,
                                   10.0, 80.0,  1e2,   1e3,   1e8,   1e20,  1e30, 3e38};
  const std::vector<double> activations{0.0, 1e-45, 1e-40, 1e-30, 1e-20, 1e-10, 1e-5, 1e-3, 1.0, 1e3, 1e10, 1e20, 1e30};
  const std::vector<double> roots{0.0, 1e-30, 1e-10, 1.0, 3.0, 10.0, 1e3, 1e10, 1e19};
  const std::vector<Case> cases{
      {"softmax, spread logits", 2e-6, logits,
       [&](double a) {
         return softmax_distance({f(a), f(-a), f(a / 2), 0.0f, f(-a / 3)});
       }},
      {"softmax, equal logits", 1e-6, logits,
       [&](double a) {
         return softmax_distance({f(a), f(a), f(a), f(a)});
       }},
      {"softmax, masked rows", 1e-6, logits,
       [&](double) { return softmax_distance(std::vector<float>(4, -HUGE_VALF)); }},
      {"loss, likely target", 2e-6, logits,
       [&](double a) {
         return loss_distance({f(a), f(-a), f(a / 2), 0.0f}, 0);
       }},
      {"loss, unlikely target", 2e-6, logits,
       [&](double a) {
         return loss_distance({f(a), f(-a), f(a / 2), 0.0f}, 1);
       }},
      {"loss, equal logits", 1e-6, logits,
       [&](double a) {
         return loss_distance({f(a), f(a)}, 0);
       }},
      {"layer norm, spread", 5e-6, activations,
       [&](double a) {
         return norm_distance({f(a), f(-a), f(a / 2), f(a / 3), f(-a / 7)}, false);
       }},
      {"layer norm, constant row", 1e-6, activations,
       [&](double a) { return norm_distance(std::vector<float>(8, f(a)), false); }},
      {"rms norm, spread", 5e-6, activations,
       [&](double a) {
         return norm_distance({f(a), f(-a), f(a / 2), f(a / 3), f(-a / 7)}, true);
       }},
      {"rms norm, constant row", 5e-6, activations,
       [&](double a) { return norm_distance(std::vector<float>(8, f(a)), true); }},
      {"attention, scores up to 3e38", 2e-5, roots,
       [&](double a) {
         return attention_distance(f(a), {f(a), f(-a), f(a / 2), f(a / 4), f(a)}, {1, 1, 1, 1, 1});
       }},
      {"attention, some keys hidden", 2e-5, roots,
       [&](double a) {
         return attention_distance(f(a), {f(a), f(a / 2), f(-a), f(a / 3)}, {0, 1, 0, 1});
       }},
      {"attention, nothing visible", 1e-6, roots,
       [&](double a) {
         return attention_distance(f(a), {f(a), f(-a), f(a)}, {0, 0, 0});
       }},
  };
  AuditReport report;
  for (const Case& c : cases) report.rows.push_back(worst_over(c));
  return report;
}

}  // namespace handgrad
