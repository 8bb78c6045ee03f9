#pragma once

#include <cmath>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "handgrad/autograd/output.h"
#include "handgrad/core/tensor.h"

namespace handgrad::test {

/// A mistake in the backward pass of `mistaken`, and the operator of tools/mutate for its kind ("" if there is none).
struct PlantedMistake {
  std::string what;
  std::string mutation;
};

inline const std::vector<PlantedMistake>& planted_mistakes() {
  static const std::vector<PlantedMistake> all{
      {"sign flipped", "sign"},
      {"assigned to a", "assign"},
      {"assigned to w", "assign"},
      {"twice as large", "double"},
      {"never added", "statement"},
      {"term dropped", "term"},
      {"factor dropped", "factor"},
      {"operands of the difference exchanged", "operands"},
      {"indices exchanged", "arguments"},
      {"loop begins late", "bound"},
      {"loop ends early", "bound"},
      {"comparison turned round", "comparison"},
      {"sine for cosine", "flag"},
      {"w transposed", "flag"},
      {"branches exchanged", "branch"},
      {"constant one per cent too large", "constant"},
      {"result saved for the product", "saved"},
      {"scaled by 1.001", ""},
      {"wrong operand", ""},
      {"missing for w", ""},
      {"missing altogether", ""},
      {"first entry NaN", ""},
      {"last entry NaN", ""},
      {"operand overwritten", ""},
      {"operand overwritten in forward", ""},
      {"result overwritten", ""},
      {"upstream gradient overwritten", ""},
  };
  return all;
}

/// h = a w^T, y = sin(h) - 0.5 l(h) with l(h) = h for h > 0, else 0.25 h; a, w and y: (N, N). The backward pass has the
/// mistake of that name, or none for ""; the name must outlive the tape.
///
///   g = dy (cos(h) - 0.5 l'(h)),   da += g w,   dw += g^T a
template <class S>
Var<S> mistaken(Var<S> a, Var<S> w, std::string_view mistake) {
  const auto is = [mistake](const char* what) { return mistake == what; };
  auto y = output("mistaken", a.shape(), a, w);
  const Index n = a.extent(0);
  const Scratch<S> h = y.scratch(n * n);
  const S *pa = a.view().data, *pw = w.view().data;
  for (Index i = 0; i < n; ++i) {
    for (Index j = 0; j < n; ++j) {
      S sum(0);
      for (Index k = 0; k < n; ++k) sum += pa[i * n + k] * pw[j * n + k];
      h.data[i * n + j] = sum;
      y.data()[i * n + j] = std::sin(sum) - S(0.5) * (std::real(sum) > 0.0 ? sum : S(0.25) * sum);
    }
  }
  if (is("operand overwritten in forward")) const_cast<S*>(pw)[0] += S(1);
  if (is("missing altogether")) return y.saves(a).on_backward([](const auto&, auto, auto, auto) {});
  return y.saves(a, w, y.var(), h).on_backward([is, n](const auto& saved, auto dy, auto da, auto dw) {
    const auto& [a_saved, w_saved, y_saved, h_saved] = saved;
    const auto slope = [&](S x) {
      const S sine = is("sine for cosine") ? std::sin(x) : std::cos(x);
      const bool positive = is("comparison turned round") ? std::real(x) < 0.0 : std::real(x) > 0.0;
      const S leak = positive != is("branches exchanged") ? S(1) : S(0.25);
      if (is("term dropped")) return sine;
      if (is("factor dropped")) return sine - leak;
      if (is("operands of the difference exchanged")) return S(0.5) * leak - sine;
      return sine - S(is("constant one per cent too large") ? 0.505 : 0.5) * leak;
    };
    const S* kept = is("result saved for the product") ? y_saved.data : h_saved.data;
    const S* other = is("wrong operand") ? a_saved.data : w_saved.data;
    const S scale = S(is("twice as large") ? 2.0 : is("scaled by 1.001") ? 1.001 : is("sign flipped") ? -1.0 : 1.0);
    const Index begin = is("loop begins late") ? 1 : 0, end = is("loop ends early") ? n - 1 : n;
    for (Index i = 0; i < n; ++i) {
      for (Index k = 0; k < n; ++k) {
        S to_a(0), to_w(0);
        for (Index j = begin; j < end; ++j) {
          const Index ij = is("indices exchanged") ? j * n + i : i * n + j,
                      jk = is("w transposed") ? k * n + j : j * n + k;
          to_a += dy.data[ij] * slope(kept[ij]) * other[jk];
          to_w += dy.data[j * n + i] * slope(kept[j * n + i]) * a_saved.data[j * n + k];
        }
        const bool first = i + k == 0, last = i + k == 2 * n - 2;
        if ((first && is("first entry NaN")) || (last && is("last entry NaN")))
          to_a = std::numeric_limits<S>::quiet_NaN();
        S &in_a = da.data[i * n + k], &in_w = dw.data[i * n + k];
        if (!is("never added")) is("assigned to a") ? in_a = scale* to_a : in_a += scale * to_a;
        if (!is("missing for w")) is("assigned to w") ? in_w = to_w : in_w += to_w;
      }
    }
    if (is("operand overwritten")) const_cast<S*>(a_saved.data)[n] = S(0);
    if (is("result overwritten")) const_cast<S*>(y_saved.data)[n] = S(0);
    if (is("upstream gradient overwritten")) const_cast<S*>(dy.data)[n] = S(0);
  });
}

}  // namespace handgrad::test
