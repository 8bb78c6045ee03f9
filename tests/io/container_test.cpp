#include <fmt/format.h>
#include <gtest/gtest.h>
#include <hdf5.h>

#include <algorithm>
#include <numeric>
#include <thread>

#include "handgrad/core/errors.h"
#include "handgrad/files/durable_write.h"
#include "handgrad/files/file_system.h"
#include "handgrad/files/read_file.h"
#include "handgrad/io/container_reader.h"
#include "handgrad/io/container_writer.h"
#include "support/failing_files.h"
#include "support/message.h"
#include "support/temporary_folder.h"

namespace handgrad {
namespace {

using test::FailingFiles;
using test::message_of;
using test::TemporaryFolder;

// A container with every type of dataset and attribute, including odd sizes and empty ones.
struct Sample {
  std::vector<float> weights = std::vector<float>(15);
  std::vector<double> moments = {1e-300, -0.0, 3.5};
  std::vector<std::int64_t> counts = {-1, INT64_MAX};
  std::vector<std::uint32_t> ids = {0, 7, UINT32_MAX};
  std::string text = "Once upon a time\n\xc3\xa9";

  Sample() { std::iota(weights.begin(), weights.end(), -3.25f); }

  ContainerContents contents() const {
    ContainerContents c;
    c.add<float>("/model/blocks/0/attention/qkv/weight", weights, {3, 5});
    c.add<double>("/optimizer/wte/m", moments, {3});
    c.add<std::int64_t>("/counts", counts, {1, 2, 1});
    c.add<std::uint32_t>("/tokenizer/ids", ids, {3});
    c.add<double>("/scalar", std::span<const double>(moments).first(1), {});
    c.add<float>("/empty", std::span<const float>(), {4, 0});
    c.add_text("/config", text);
    c.attributes = {{"/", "step", std::int64_t{1234}},
                    {"/", "best", 1.5},
                    {"/", "build", std::string("gcc 12")},
                    {"/", "nothing", std::string()},
                    {"/loop/state", "tokens", INT64_MIN}};
    return c;
  }
};

template <class T>
std::vector<T> copied(std::span<const T> values) {
  return {values.begin(), values.end()};
}

TEST(container, gives_back_what_it_was_given) {
  const Sample s;
  const Container c = Container::from_bytes(seal_contents(s.contents()), "sample");
  EXPECT_EQ(copied(c.values<float>("/model/blocks/0/attention/qkv/weight")), s.weights);
  EXPECT_EQ(copied(c.values<double>("/optimizer/wte/m")), s.moments);
  EXPECT_EQ(copied(c.values<std::int64_t>("/counts")), s.counts);
  EXPECT_EQ(copied(c.values<std::uint32_t>("/tokenizer/ids")), s.ids);
  EXPECT_EQ(c.text("/config"), s.text);
  EXPECT_EQ(c.values<float>("/empty").size(), 0u);
  EXPECT_EQ(c.find("/counts")->shape, (std::vector<Index>{1, 2, 1}));
  EXPECT_EQ(c.find("/scalar")->shape, std::vector<Index>{});
  EXPECT_EQ(c.datasets().size(), 7u);
  EXPECT_EQ(c.attribute<std::int64_t>("/", "step"), 1234);
  EXPECT_EQ(c.attribute<double>("/", "best"), 1.5);
  EXPECT_EQ(c.attribute<std::string>("/", "build"), "gcc 12");
  EXPECT_EQ(c.attribute<std::string>("/", "nothing"), "");
  EXPECT_EQ(c.attribute<std::int64_t>("/loop/state", "tokens"), INT64_MIN);
  for (const DatasetEntry& d : c.datasets()) EXPECT_EQ(d.offset % 8, 0u) << d.path;
}

TEST(container, missing_and_mistyped_things_are_named) {
  const Container c = Container::from_bytes(seal_contents(Sample().contents()), "a.h5");
  EXPECT_EQ(message_of<CheckpointError>([&] { c.values<float>("/model/x"); }), "cannot load a.h5: it has no /model/x");
  EXPECT_EQ(message_of<CheckpointError>([&] { c.values<float>("/counts"); }),
            "cannot load a.h5: /counts is int64, expected float32");
  EXPECT_EQ(message_of<CheckpointError>([&] { c.attribute<double>("/", "step"); }),
            "cannot load a.h5: attribute step of / has another type");
  EXPECT_EQ(message_of<CheckpointError>([&] { c.attribute<double>("/", "steps"); }),
            "cannot load a.h5: / has no attribute steps");
}

TEST(container, the_same_contents_give_the_same_bytes) {
  const Sample s;
  ContainerContents reversed = s.contents();
  std::reverse(reversed.datasets.begin(), reversed.datasets.end());
  std::reverse(reversed.attributes.begin(), reversed.attributes.end());
  EXPECT_TRUE(seal_contents(s.contents()) == seal_contents(reversed));
}

TEST(container, nothing_at_all_is_a_container_too) {
  EXPECT_TRUE(Container::from_bytes(seal_contents({}), "empty").datasets().empty());
}

TEST(container, many_and_large_datasets) {
  std::vector<std::vector<float>> tensors;
  ContainerContents contents;
  for (std::size_t i = 0; i < 600; ++i) tensors.emplace_back(i % 7 == 0 ? 20000 : i, static_cast<float>(i));
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    contents.add<float>("/model/blocks/" + std::to_string(i) + "/weight", tensors[i],
                        {static_cast<Index>(tensors[i].size())});
  }
  const Container c = Container::from_bytes(seal_contents(contents), "large");
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    EXPECT_EQ(copied(c.values<float>("/model/blocks/" + std::to_string(i) + "/weight")), tensors[i]);
  }
}

// Collects every dataset that libhdf5 sees.
herr_t collect(hid_t, const char* name, const H5O_info_t* info, void* paths) {
  if (info->type == H5O_TYPE_DATASET)
    static_cast<std::vector<std::string>*>(paths)->push_back(fmt::format("/{}", name));
  return 0;
}

TEST(container, libhdf5_and_the_index_see_the_same) {
  const TemporaryFolder folder;
  write_container(posix_files(), folder / "a.h5", Sample().contents());
  const Container c = Container::load(folder / "a.h5");
  const hid_t file = H5Fopen((folder / "a.h5").c_str(), H5F_ACC_RDONLY, H5P_DEFAULT);
  ASSERT_GE(file, 0);
  std::vector<std::string> paths;
  H5Ovisit(file, H5_INDEX_NAME, H5_ITER_INC, collect, &paths);
  EXPECT_EQ(paths.size(), c.datasets().size());
  for (const DatasetEntry& d : c.datasets()) {
    const hid_t dataset = H5Dopen2(file, d.path.c_str(), H5P_DEFAULT);
    ASSERT_GE(dataset, 0) << d.path;
    EXPECT_EQ(H5Dget_storage_size(dataset), d.bytes) << d.path;
    const hid_t type = H5Dget_type(dataset);
    const hid_t space = H5Dget_space(dataset);
    std::vector<hsize_t> extents(d.shape.size());
    H5Sget_simple_extent_dims(space, extents.data(), nullptr);
    EXPECT_EQ(std::vector<Index>(extents.begin(), extents.end()), d.shape);
    std::vector<std::byte> bytes(d.bytes);
    EXPECT_GE(H5Dread(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, bytes.data()), 0);
    EXPECT_EQ(bytes, copied(c.bytes_of(d))) << d.path;
    H5Sclose(space), H5Tclose(type), H5Dclose(dataset);
  }
  H5Fclose(file);
}

TEST(container, libhdf5_is_left_as_it_was) {
  H5E_auto2_t before = nullptr, after = nullptr;
  void *before_data = nullptr, *after_data = nullptr;
  H5Eget_auto2(H5E_DEFAULT, &before, &before_data);
  seal_contents(Sample().contents());
  H5Eget_auto2(H5E_DEFAULT, &after, &after_data);
  EXPECT_EQ(before, after);
  EXPECT_EQ(before_data, after_data);
  EXPECT_EQ(H5Fget_obj_count(static_cast<hid_t>(H5F_OBJ_ALL), H5F_OBJ_ALL), 0);
}

TEST(container, two_threads_may_write_at_once) {
  const auto expected = seal_contents(Sample().contents());
  const auto work = [&] {
    for (int i = 0; i < 50; ++i) EXPECT_EQ(seal_contents(Sample().contents()), expected);
  };
  std::thread other(work);
  work();
  other.join();
}

TEST(container, contents_that_no_file_can_hold_are_refused) {
  const float x = 0;
  const std::span<const float> one(&x, 1);
  const auto refusal = [](const ContainerContents& contents) {
    return message_of<CheckpointError>([&] { seal_contents(contents); });
  };
  for (const char* path : {"", "/", "a", "/a/", "//a", "/a//b", "/./a", "/a/..", "/a\nb"}) {
    ContainerContents c;
    c.add<float>(path, one, {1});
    EXPECT_NE(refusal(c).find("is not a path"), std::string::npos) << path;
  }
  ContainerContents twice;
  twice.add<float>("/a", one, {1});
  twice.add<float>("/a", one, {1});
  EXPECT_EQ(refusal(twice), "cannot make a checkpoint: /a is a duplicate or out of order");
  ContainerContents inside;
  inside.add<float>("/a", one, {1});
  inside.add<float>("/a-b", one, {1});
  inside.add<float>("/a/b/c", one, {1});
  EXPECT_EQ(refusal(inside), "cannot make a checkpoint: /a/b/c is inside another dataset");
  ContainerContents huge;
  huge.datasets = {{"/a", ElementType::float32, {INT64_MAX, 2}, &x}};
  EXPECT_EQ(refusal(huge), "cannot make a checkpoint: a shape is negative or too large");
  ContainerContents large;
  large.datasets = {{"/a", ElementType::float32, {Index{1} << 60}, &x}};
  EXPECT_EQ(refusal(large), "cannot make a checkpoint: its datasets are too large");
  ContainerContents negative;
  negative.datasets = {{"/a", ElementType::float32, {-1}, &x}};
  EXPECT_EQ(refusal(negative), "cannot make a checkpoint: a shape is negative or too large");
  ContainerContents attribute;
  attribute.attributes = {{"/", "long", std::string(5000, 'x')}};
  EXPECT_EQ(refusal(attribute), "cannot make a checkpoint: the attribute long is too long or contains a NUL");
}

TEST(container, a_failing_save_leaves_the_last_one) {
  const TemporaryFolder folder;
  const std::string path = folder / "step-00000001.h5";
  const Sample s;
  write_container(posix_files(), path, s.contents());
  const auto before = files::read_bytes(path);
  for (const std::string failing : {"open", "write", "sync", "close", "rename"}) {
    FailingFiles files([&](int, const std::string& name) { return name == failing ? -ENOSPC : 0; });
    ContainerContents other;
    other.add_text("/config", "other");
    EXPECT_EQ(message_of<DataError>([&] { write_container(&files, path, other); }),
              "cannot write " + path + ": no space left on device");
    EXPECT_EQ(files::read_bytes(path), before);
    EXPECT_EQ(files::list_folder(posix_files(), folder.path()).size(), 1u);
  }
}

}  // namespace
}  // namespace handgrad
