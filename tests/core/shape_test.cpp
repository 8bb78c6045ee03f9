#include "handgrad/core/shape.h"

#include <gtest/gtest.h>

#include "handgrad/core/buffer.h"
#include "handgrad/core/errors.h"
#include "handgrad/core/tensor.h"
#include "support/message.h"

#if defined(__SANITIZE_ADDRESS__)
constexpr bool address_sanitizer = true;  // ends the program if memory could not be allocated
#else
constexpr bool address_sanitizer = false;
#endif

namespace handgrad {
namespace {

using test::message_of;

TEST(Shape, counts_are_64_bit) {
  EXPECT_EQ((Shape{64, 1024, 50257}.size()), 3293642752);
  EXPECT_EQ((Shape{Index{1} << 31, Index{1} << 31}.size()), Index{1} << 62);
}

TEST(Shape, overflow_is_refused_before_anything_is_allocated) {
  const Index before = memory::allocations_of_this_thread();
  const Index large = Index{1} << 32;
  EXPECT_EQ(message_of<RangeError>([&] {
              Tensor<float>(Shape{large, large});
            }),
            "shape: number of elements: 4294967296 x 4294967296 does not fit in 63 bits");
  EXPECT_THROW((Shape{INT64_MAX, 2}), RangeError);
  EXPECT_THROW((Shape{3, 3, 3}.with(0, INT64_MAX)), RangeError);
  EXPECT_THROW(checked_product(large, large, "count"), RangeError);
  EXPECT_EQ(memory::allocations_of_this_thread(), before);
}

TEST(Shape, extents_and_axes) {
  const Shape shape{2, 3, 4};
  EXPECT_EQ(shape.rank(), 3);
  EXPECT_EQ(shape[0], 2);
  EXPECT_EQ(shape[-1], 4);
  EXPECT_EQ(shape.to_string(), "(2, 3, 4)");
  EXPECT_EQ(shape.with(-1, 7), (Shape{2, 3, 7}));
  EXPECT_EQ(Shape{}.size(), 1);
  EXPECT_EQ(Shape{}.to_string(), "()");
  EXPECT_EQ(message_of<ShapeError>([&] { (void)shape[3]; }), "shape (2, 3, 4): there is no axis 3");
  EXPECT_THROW(shape.with(-4, 1), ShapeError);
  EXPECT_THROW((Shape{2, 0}), ShapeError);
  EXPECT_THROW((Shape{-1}), ShapeError);
  EXPECT_THROW((Shape{1, 1, 1, 1, 1, 1, 1}), ShapeError);
}

TEST(Shape, broadcasting) {
  EXPECT_EQ(broadcast_shape({2, 1, 4}, {3, 1}, "add"), (Shape{2, 3, 4}));
  EXPECT_EQ(broadcast_shape({}, {3}, "add"), (Shape{3}));
  EXPECT_EQ(message_of<ShapeError>([&] {
              broadcast_shape({2, 3}, {2}, "add");
            }),
            "add: extents must be equal or 1, got (2, 3) and (2)");
}

TEST(Tensor, takes_as_many_values_as_it_has_elements) {
  EXPECT_THROW(Tensor<float>({2, 2}, {1, 2, 3}), ShapeError);
  const Tensor<float> x({2, 2}, {1, 2, 3, 4});
  const Tensor<float> copy = x.copy();
  EXPECT_NE(copy.data(), x.data());
  EXPECT_EQ(copy[3], 4.0f);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(x.data()) % 64, 0u);
}

TEST(Memory, the_error_carries_the_amount) {
  try {
    memory::allocate_aligned(INT64_MAX, 16);
    FAIL() << "no error";
  } catch (const ResourceError& error) {
    EXPECT_EQ(error.bytes(), SIZE_MAX);
  }
  EXPECT_THROW(memory::allocate_aligned(-1, 4), ResourceError);
}

TEST(Memory, the_error_carries_the_amount_that_the_system_refused) {
  if (address_sanitizer) GTEST_SKIP() << "the sanitizer's allocator ends the program instead of refusing";
  try {
    Tensor<float>(Shape{Index{1} << 40, Index{1} << 20});
    FAIL() << "no error";
  } catch (const ResourceError& error) {
    EXPECT_EQ(error.bytes(), std::uint64_t{1} << 62);
    EXPECT_NE(std::string(error.what()).find("MB"), std::string::npos);
  }
}

TEST(View, rows_and_heads_are_read_where_the_layout_allows) {
  Tensor<float> x(Shape{2, 3, 4, 5});
  EXPECT_EQ(x.rows().rows, 24);
  EXPECT_EQ(x.heads().head(1, 2).row(2), x.data() + ((1 * 3 + 2) * 4 + 2) * 5);
  EXPECT_TRUE(x.view().is_contiguous());
  View<float> gapped = x.view();
  gapped.shape = Shape{2, 3, 2, 5};  // two heads of four: rows cannot be joined
  EXPECT_FALSE(gapped.is_contiguous());
  EXPECT_THROW(gapped.rows(), ShapeError);
  EXPECT_EQ(gapped.heads().heads, 2);
  gapped.shape = Shape{2, 3, 4, 2};
  EXPECT_EQ(gapped.rows().stride, 5);
  View<float> turned = x.view();
  std::swap(turned.strides[2], turned.strides[3]);
  turned.shape = Shape{2, 3, 5, 4};
  EXPECT_THROW(turned.rows(), ShapeError);
  EXPECT_THROW(turned.heads(), ShapeError);
  const Tensor<float> three(Shape{3}), scalar(Shape{});
  EXPECT_THROW(three.heads(), ShapeError);
  EXPECT_THROW(scalar.rows(), ShapeError);
}

}  // namespace
}  // namespace handgrad
