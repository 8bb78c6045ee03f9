#include <handgrad/autograd/output.h>
#include <handgrad/verify/gradient_check.h>

#include <cstdio>

// A user's own operation, y = x^3, outside handgrad's sources, and the proof of its backward pass. The scalar S is
// float or double, and std::complex<double> for the proof, which never calls the backward pass.
template <class S>
handgrad::Var<S> cube(handgrad::Var<S> x) {
  auto y = handgrad::output("cube", x.shape(), x);
  const handgrad::Rows<const S> in = x.rows();
  const handgrad::Rows<S> out = y.rows();
  for (handgrad::Index r = 0; r < in.rows; ++r) {
    for (handgrad::Index c = 0; c < in.cols; ++c) {
      const S v = in.row(r)[c];
      out.row(r)[c] = v * v * v;
    }
  }
  return y.saves(x).on_backward([](const auto& saved, auto dy, auto dx) {  // dx += 3 x^2 dy
    const auto& [x_saved] = saved;
    const auto kept = x_saved.rows();
    const auto upstream = dy.rows();
    const auto to = dx.rows();
    for (handgrad::Index r = 0; r < kept.rows; ++r) {
      for (handgrad::Index c = 0; c < kept.cols; ++c) {
        const S v = kept.row(r)[c];
        to.row(r)[c] += S(3) * v * v * upstream.row(r)[c];
      }
    }
  });
}

int main() {
  const handgrad::Tensor<double> x({2, 3}, {0.5, -1.2, 0.0, 2.0, 0.1, -0.7});
  const auto report = handgrad::check_gradients([](auto in) { return cube(in[0]); }, std::span(&x, 1));
  std::printf("%s: worst error %.1e by complex step, %.1e by differences\n%s", report.passed() ? "proven" : "wrong",
              report.worst_complex_error, report.worst_difference_error, report.worst(3).c_str());
  return report.passed() ? 0 : 1;
}
