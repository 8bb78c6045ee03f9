#include <limits>
#include <utility>

#include "handgrad/core/buffer.h"
#include "handgrad/core/gemm.h"
#include "handgrad/core/parallel.h"
#include "handgrad/core/random.h"
#include "handgrad/core/tensor.h"
#include "handgrad/files/appender.h"
#include "handgrad/files/durable_write.h"
#include "handgrad/files/hash.h"
#include "handgrad/files/read_file.h"
#include "handgrad/files/run_lock.h"
#include "handgrad/ops/attention_options.h"
#include "handgrad/ops/loss_options.h"
#include "handgrad/ops/mask.h"
#include "handgrad/ops/positions.h"
#include "misuse/refusal.h"
#include "support/temporary_folder.h"

namespace handgrad::misuse {
namespace {

const Covers covers{"ops/attention_options.h",
                    "core/gemm.h",
                    "core/parallel.h",
                    "core/buffer.h",
                    "ops/dropout_mask.h",
                    "core/errors.h",
                    "files/hash.h",
                    "files/file_system.h",
                    "files/durable_write.h",
                    "files/appender.h",
                    "files/read_file.h",
                    "files/run_lock.h",
                    "ops/loss_options.h",
                    "ops/mask.h",
                    "ops/positions.h",
                    "core/random.h",
                    "core/shape.h",
                    "core/tensor.h",
                    "core/views.h"};

constexpr Index far = std::numeric_limits<Index>::max();

// A view of a temporary would dangle, so it does not compile.
template <class T>
constexpr bool views_of_temporaries = requires {
  std::declval<T>().view();
}
|| requires { std::declval<T>().rows(); }
|| requires { std::declval<T>().heads(); }
|| requires { std::declval<T>().span(); };
static_assert(!views_of_temporaries<Mask>);
static_assert(!views_of_temporaries<Tensor<float>>);
static_assert(!views_of_temporaries<const Tensor<double>>);
static_assert(requires(Tensor<float> & x) { x.view(); });

TEST(MisuseCore, tiles_and_blocks) {
  EXPECT_REFUSED(RangeError, "parallel_ranges: a tile must have at least 1 element, got 0",
                 parallel_ranges(10, 0, [](Index, Index) {}));
  EXPECT_REFUSED(RangeError, "block_rows: a sequence must have at least 1 row, got 0", gemm::block_rows(0));
  EXPECT_NO_THROW(parallel_tiles(-1, [](Index) {}));
}

TEST(Misuse, buffer) {
  EXPECT_REFUSED(ResourceError, "memory: -1 elements", Buffer<float>(-1));
  EXPECT_REFUSED(ResourceError, "more than can be addressed", Buffer<double>(far));
  EXPECT_REFUSED(ResourceError, "memory:", memory::allocate_aligned(-5, 4));
  EXPECT_EQ(Buffer<float>(0).data(), nullptr);
  Buffer<float> one(4);
  const Buffer<float> two = std::move(one);
  EXPECT_EQ(one.size(), 0);  // NOLINT: a moved-from buffer is empty
  EXPECT_EQ(one.data(), nullptr);
  EXPECT_EQ(two.size(), 4);
}

TEST(Misuse, shape) {
  EXPECT_REFUSED(ShapeError, "shape: every extent must be at least 1, got 0", Shape{2, 0});
  EXPECT_REFUSED(ShapeError, "got -3", Shape{-3});
  EXPECT_REFUSED(ShapeError, "at most 6 axes, got 7", Shape{1, 1, 1, 1, 1, 1, 1});
  EXPECT_REFUSED(RangeError, "does not fit in 63 bits", Shape{far, 2});
  EXPECT_REFUSED(ShapeError, "shape (2, 3): there is no axis 2", Shape{2, 3}[2]);
  EXPECT_REFUSED(ShapeError, "there is no axis -1", Shape{}[-1]);
  EXPECT_REFUSED(ShapeError, "there is no axis -3", (Shape{2, 3}.with(-3, 1)));
  EXPECT_REFUSED(ShapeError, "got 0", (Shape{2, 3}.with(0, 0)));
  EXPECT_REFUSED(RangeError, "x", checked_product(far, 3, "count"));
  EXPECT_REFUSED(ShapeError, "sum: extents must be equal or 1, got (2) and (3)", broadcast_shape({2}, {3}, "sum"));
  EXPECT_EQ(Shape(std::span<const Index>{}), Shape{});
}

TEST(Misuse, tensor) {
  Tensor<float> nothing;
  EXPECT_TRUE(nothing.empty());
  EXPECT_REFUSED(ShapeError, "tensor: a tensor with elements is needed", nothing.view());
  EXPECT_REFUSED(ShapeError, "tensor: a tensor with elements", std::as_const(nothing).rows());
  EXPECT_REFUSED(ShapeError, "tensor: a tensor with elements", nothing.heads());
  EXPECT_REFUSED(RangeError, "tensor: the index must be in [0, 0), got 0", nothing[0]);
  EXPECT_TRUE(nothing.copy().empty());
  EXPECT_TRUE(nothing.span().empty());
  EXPECT_REFUSED(ShapeError, "tensor (2, 2): 4 values are needed, got 3", Tensor<float>({2, 2}, {1, 2, 3}));
  EXPECT_REFUSED(ShapeError, "1 values are needed, got 0", Tensor<float>(Shape{}, std::span<const float>{}));
  EXPECT_REFUSED(ResourceError, "memory:", Tensor<float>(Shape{far}));
  Tensor<float> x(Shape{3});
  EXPECT_REFUSED(RangeError, "the index must be in [0, 3), got 3", x[3]);
  EXPECT_REFUSED(RangeError, "got -1", std::as_const(x)[-1]);
  EXPECT_REFUSED(ShapeError, "view: heads (batch, time, head, width) with adjacent widths are needed, got (3)",
                 x.heads());
  const Tensor<float> taken = std::move(x);
  EXPECT_REFUSED(ShapeError, "moved from", x.view());
  EXPECT_EQ(taken.size(), 3);
  const Mask mask;
  EXPECT_REFUSED(ShapeError, "tensor:", AttentionOptions{.mask = mask.view()});
}

TEST(Misuse, views) {
  const View<float> none;
  EXPECT_FALSE(none.rows());
  EXPECT_FALSE(none.heads());
  float x[6] = {};
  const View<float> scalar{x, Shape{}, {}};
  EXPECT_REFUSED(ShapeError, "relu: a value of rank 1 or more is needed, got ()", scalar.rows("relu"));
  const View<float> turned{x, {2, 3}, {1, 2}};
  EXPECT_REFUSED(ShapeError, "relu: rows of adjacent elements are needed, got a transposed or sliced view (2, 3)",
                 turned.rows("relu"));
  EXPECT_REFUSED(ShapeError, "make a copy with contiguous()", turned.rows());
  EXPECT_REFUSED(ShapeError, "view: heads (batch, time, head, width) with adjacent widths are needed, got (2, 3)",
                 turned.heads());
}

TEST(Misuse, random_and_dropout) {
  const Random random(1, Stream::audit);
  EXPECT_REFUSED(RangeError, "random: the range must be 1 or more, got 0", random.below(0, 0));
  int calls = 0;
  DropoutMask{0.5}.row(0, 0, 0, 0, [&](Index, bool) { ++calls; });
  DropoutMask{0.5}.row(0, 4, 3, 1, [&](Index, bool) { ++calls; });
  EXPECT_EQ(calls, 0);
}

TEST(Misuse, nothing_to_hash_or_count) {
  EXPECT_EQ(files::hash64({}), files::hash64({}));
  EXPECT_EQ(files::hash128({}), files::hash128({}));
  EXPECT_EQ(count_targets({}, -100), 0);
  EXPECT_EQ(LossSum().mean(), 0.0);
  EXPECT_FALSE(PositionsRef());
}

TEST(Misuse, files) {
  const test::TemporaryFolder folder;
  const std::string missing = folder.path() + "/none/file";
  FileSystem* fs = posix_files();
  EXPECT_REFUSED(DataError, "cannot", files::write_durably(fs, "", "text"));
  EXPECT_REFUSED(DataError, "cannot", files::write_durably(fs, missing, "text"));
  EXPECT_REFUSED(DataError, "cannot", files::write_durably(fs, folder.path(), "text"));
  EXPECT_REFUSED(DataError, missing, files::read_file(missing));
  EXPECT_REFUSED(DataError, "cannot", files::read_file(""));
  EXPECT_REFUSED(DataError, folder.path(), files::read_file(folder.path()));
  EXPECT_REFUSED(DataError, folder.path(), files::read_bytes(folder.path()));
  EXPECT_REFUSED(DataError, "cannot", files::replace_link(fs, "target", missing));
  EXPECT_REFUSED(DataError, "cannot", files::list_folder(fs, missing));
  EXPECT_REFUSED(DataError, "cannot", files::Appender(fs, missing));
  EXPECT_REFUSED(DataError, "cannot", files::Appender(fs, ""));
  EXPECT_REFUSED(DataError, "lock", files::RunLock(missing));
  files::Appender log(fs, folder.path() + "/log");
  log.append("row");
  EXPECT_REFUSED(RangeError, "", log.truncate(100));
  EXPECT_REFUSED(RangeError, "", log.truncate(-1));
  EXPECT_EQ(files::folder_of(""), ".");
  EXPECT_FALSE(files::describe_errno(-1).empty());
}

}  // namespace
}  // namespace handgrad::misuse
