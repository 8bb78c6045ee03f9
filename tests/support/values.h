#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "handgrad/autograd/tape.h"
#include "handgrad/core/errors.h"
#include "handgrad/core/random.h"

namespace handgrad::test {

/// The elements of a view of any layout, row by row.
template <class T>
std::vector<std::remove_const_t<T>> elements(const View<T>& x) {
  std::vector<std::remove_const_t<T>> values;
  for (Index i = 0; i < x.shape.size(); ++i) {
    Index rest = i, at = 0;
    for (int axis = x.shape.rank() - 1; axis >= 0; --axis) {
      at += rest % x.shape[axis] * x.strides[static_cast<std::size_t>(axis)];
      rest /= x.shape[axis];
    }
    values.push_back(x.data[at]);
  }
  return values;
}
template <class S>
std::vector<S> elements(const Var<S>& x) {
  return elements(x.view());
}
template <class S>
std::vector<S> gradient(const Var<S>& x) {
  return elements(x.gradient());
}

/// |a - b| <= tolerance, element by element; NaN is never near. Names the first element that differs.
template <class A, class B>
void expect_near(const std::vector<A>& a, const std::vector<B>& b, double tolerance, const char* what = "") {
  ASSERT_EQ(a.size(), b.size()) << what;
  for (std::size_t i = 0; i < a.size(); ++i) {
    ASSERT_NEAR(static_cast<double>(a[i]), static_cast<double>(b[i]), tolerance) << what << " at " << i;
  }
}

/// The same relative to the largest element of b.
template <class A, class B>
void expect_close(const std::vector<A>& a, const std::vector<B>& b, double tolerance, const char* what = "") {
  double largest = 0.0;
  for (const B& x : b) largest = std::max(largest, std::abs(static_cast<double>(x)));
  expect_near(a, b, tolerance * std::max(largest, 1e-300), what);
}

template <class S>
bool same_bits(const std::vector<S>& a, const std::vector<S>& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(S)) == 0);
}

/// Standard normal numbers times `spread`, rounded to float so that all scalars start from the same numbers.
template <class S>
Tensor<S> random_tensor(const Shape& shape, std::uint64_t seed, double spread = 1.0) {
  Tensor<S> x(shape);
  const Random random(seed, Stream::audit);
  for (Index i = 0; i < x.size(); ++i) {
    x[i] = static_cast<S>(static_cast<float>(spread * random.normal(static_cast<std::uint64_t>(i))));
  }
  return x;
}

}  // namespace handgrad::test
