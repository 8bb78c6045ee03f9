#include "handgrad/autograd/parameter_store.h"

#include <gtest/gtest.h>

#include "handgrad/core/errors.h"
#include "support/message.h"

namespace handgrad {
namespace {

TEST(ParameterStore, slices_are_aligned_and_gaps_are_zero) {
  ParameterStore<float> store;
  store.add("bias", Shape{3});
  store.add("blocks/0/weight", Shape{5, 7});
  store.add("scale", Shape{});
  store.allocate();
  store.allocate_gradients();
  for (const Parameter& p : store.parameters()) {
    EXPECT_EQ(p.offset % 16, 0) << p.name;
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(store.value(p).data) % 64, 0u) << p.name;
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(store.gradient(p).data) % 64, 0u) << p.name;
  }
  EXPECT_EQ(store.scalar_count(), 3 + 35 + 1);
  EXPECT_GE(store.flat_size(), store.scalar_count());
  for (Index i = 0; i < store.flat_size(); ++i) {
    ASSERT_EQ(store.values()[i], 0.0f);
    ASSERT_EQ(store.gradients()[i], 0.0f);
  }
}

TEST(ParameterStore, decay_is_for_two_axes_and_more) {
  ParameterStore<double> store;
  EXPECT_FALSE(store.parameter(store.add("bias", Shape{3})).decays());
  EXPECT_TRUE(store.parameter(store.add("weight", Shape{3, 1})).decays());
  EXPECT_FALSE(store.parameter(store.add("scalar", Shape{})).decays());
}

TEST(ParameterStore, names_are_unique_and_found) {
  ParameterStore<float> store;
  store.add("weight", Shape{3});
  EXPECT_EQ(test::message_of<Error>([&] { store.add("weight", Shape{4}); }), "parameter weight: the name is taken");
  EXPECT_EQ(store.find("weight")->shape, (Shape{3}));
  EXPECT_EQ(store.find("bias"), nullptr);
  store.allocate();
  EXPECT_THROW(store.add("bias", Shape{3}), Error);
}

TEST(ParameterStore, the_version_counts_who_asks_to_write) {
  ParameterStore<float> store;
  store.add("weight", Shape{3});
  store.allocate();
  const Index before = store.version();
  store.values();
  EXPECT_EQ(store.version(), before);
  store.mutable_values();
  EXPECT_EQ(store.version(), before + 1);
}

}  // namespace
}  // namespace handgrad
