#include "handgrad/optim/optimizer.h"

#include <algorithm>
#include <limits>

#include "handgrad/core/parallel.h"
#include "support/values.h"

namespace handgrad::test {
namespace {

template <class S>
ParameterStore<S> store_of(const std::vector<Shape>& shapes) {
  ParameterStore<S> store;
  for (std::size_t i = 0; i < shapes.size(); ++i) store.add(std::to_string(i), shapes[i]);
  store.allocate();
  store.allocate_gradients();
  return store;
}

TEST(Clipping, is_by_the_norm_of_the_whole_update) {
  auto store = store_of<double>({Shape{1}, Shape{1}});
  store.gradients()[store.parameter(0).offset] = 1.0;  // the mean of (2, 0) and (0, 2)
  store.gradients()[store.parameter(1).offset] = 1.0;
  const double norm = gradient_norm(store);
  EXPECT_DOUBLE_EQ(norm, std::sqrt(2.0));
  EXPECT_NEAR(clip_factor(norm, 1.0), 0.7071067812, 1e-10);
  EXPECT_EQ(clip_factor(0.5, 1.0), 1.0);
  EXPECT_EQ(clip_factor(1.0, 1.0), 1.0);
  EXPECT_EQ(clip_factor(100.0, 0.0), 1.0);  // no clipping
  EXPECT_EQ(clip_factor(0.0, 1.0), 1.0);
}

TEST(Clipping, the_norm_is_accumulated_in_double) {
  auto store = store_of<float>({Shape{300, 1000}});
  for (Index i = 0; i < store.flat_size(); ++i) store.gradients()[i] = 1e-30f;
  EXPECT_NEAR(gradient_norm(store) / (1e-30 * std::sqrt(300000.0)), 1.0, 1e-6);
  store.gradients()[7] = 3e38f;
  EXPECT_NEAR(gradient_norm(store) / 3e38, 1.0, 1e-6);
  store.gradients()[7] = std::numeric_limits<float>::infinity();
  EXPECT_TRUE(std::isinf(gradient_norm(store)));
  store.gradients()[299999] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(std::isnan(gradient_norm(store)));
}

TEST(AdamW, decays_a_tied_weight_once_and_a_bias_never) {
  auto store = store_of<double>({Shape{2, 1}, Shape{2}});
  store.mutable_values()[store.parameter(0).offset] = 1.0;
  store.mutable_values()[store.parameter(1).offset] = 1.0;
  AdamW<double> optimizer(store, {.weight_decay = 0.1});
  optimizer.step(store, 0.1, 1.0);  // gradients are 0
  EXPECT_NEAR(store.value(store.parameter(0)).data[0], 0.99, 1e-15);
  EXPECT_EQ(store.value(store.parameter(1)).data[0], 1.0);
}

TEST(AdamW, the_first_update_has_the_size_of_the_rate) {
  auto store = store_of<double>({Shape{3}});
  const double gradients[] = {1e-3, -5.0, 1e6};
  std::copy_n(gradients, 3, store.gradients());
  AdamW<double> optimizer(store, {});
  EXPECT_EQ(optimizer.updates(), 0);
  optimizer.step(store, 0.01, 0.5);
  EXPECT_EQ(optimizer.updates(), 1);
  for (Index i = 0; i < 3; ++i) EXPECT_NEAR(store.values()[i], gradients[i] > 0 ? -0.01 : 0.01, 1e-6);
  EXPECT_NEAR(optimizer.state(0)[1], 0.1 * 0.5 * -5.0, 1e-15);    // m
  EXPECT_NEAR(optimizer.state(1)[1], 0.01 * 0.25 * 25.0, 1e-15);  // v
}

TEST(Sgd, keeps_its_momentum) {
  auto store = store_of<double>({Shape{1, 1}});
  store.mutable_values()[0] = 1.0;
  store.gradients()[0] = 1.0;
  Sgd<double> optimizer(store, {.momentum = 0.5, .weight_decay = 0.1});
  optimizer.step(store, 0.1, 2.0);
  EXPECT_NEAR(store.values()[0], 1.0 - 0.1 * 2.1, 1e-15);
  optimizer.step(store, 0.1, 2.0);
  EXPECT_NEAR(store.values()[0], 0.79 - 0.1 * (1.05 + 2.0 + 0.079), 1e-15);
}

template <class O, class Options>
void expect_the_same_bits(const Options& options) {
  std::vector<float> first;
  for (const int threads : {1, 2, 4}) {
    const ThreadScope scope(threads);
    auto store = store_of<float>({Shape{300, 401}, Shape{77}, Shape{5, 5}});
    const Random random(1, Stream::audit);
    for (const Parameter& p : store.parameters()) {
      for (Index i = p.offset; i < p.offset + p.shape.size(); ++i) {
        store.gradients()[i] = static_cast<float>(random.normal(static_cast<std::uint64_t>(i)));
      }
    }
    O optimizer(store, options);
    for (int step = 0; step < 3; ++step) optimizer.step(store, 0.01, clip_factor(gradient_norm(store), 1.0));
    const std::vector<float> bits(store.values(), store.values() + store.flat_size());
    if (first.empty()) first = bits;
    EXPECT_TRUE(same_bits(bits, first)) << threads << " threads";
    for (Index i = 77; i < 80; ++i) EXPECT_EQ(bits[static_cast<std::size_t>(store.parameter(1).offset + i)], 0.0f);
  }
}

// A parameter of three tiles is updated like one of a single element.
template <class O, class Options>
void expect_one_update_each(const Options& options) {
  const auto moved = [&](const Shape& shape) {
    auto store = store_of<float>({Shape{2, 2}, shape});
    std::fill_n(store.mutable_values(), store.flat_size(), 1.0f);
    std::fill_n(store.gradients(), store.flat_size(), 0.5f);
    O optimizer(store, options);
    for (int step = 0; step < 2; ++step) optimizer.step(store, 0.1, 1.0);
    const float* values = store.values() + store.parameter(1).offset;
    return std::vector<float>(values, values + shape.size());
  };
  const float one = moved({1, 1})[0];
  EXPECT_NE(one, 1.0f);
  const std::vector<float> many = moved({300, 501});
  EXPECT_EQ(std::count(many.begin(), many.end(), one), 300 * 501);
}

TEST(Optimizers, update_every_element_once) {
  expect_one_update_each<AdamW<float>>(AdamWOptions{});
  expect_one_update_each<Sgd<float>>(SgdOptions{});
}

TEST(Optimizers, give_the_same_bits_for_any_number_of_threads) {
  expect_the_same_bits<AdamW<float>>(AdamWOptions{});
  expect_the_same_bits<Sgd<float>>(SgdOptions{});
}

}  // namespace
}  // namespace handgrad::test
