#include "handgrad/io/reseal.h"

#include <gtest/gtest.h>
#include <hdf5.h>

#include <filesystem>
#include <fstream>
#include <functional>

#include "handgrad/core/errors.h"
#include "handgrad/files/durable_write.h"
#include "handgrad/files/file_system.h"
#include "handgrad/files/read_file.h"
#include "handgrad/io/container_writer.h"
#include "support/message.h"
#include "support/temporary_folder.h"

namespace handgrad {
namespace {

using test::message_of;
using test::TemporaryFolder;

// Makes a plain HDF5 file, as another program writes it.
void make_plain(const std::string& path, const std::function<void(hid_t)>& fill) {
  const hid_t file = H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  fill(file);
  H5Fclose(file);
}

// Adds /x, a dataset of n numbers, with the creation properties `creation`.
void add_numbers(hid_t file, hid_t type, hsize_t n, hid_t creation, bool write = true) {
  const hid_t space = H5Screate_simple(1, &n, nullptr);
  const hid_t dataset = H5Dcreate2(file, "/x", type, space, H5P_DEFAULT, creation, H5P_DEFAULT);
  const std::vector<double> values(write ? n : 0, 1.5);
  if (write) H5Dwrite(dataset, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data());
  H5Dclose(dataset), H5Sclose(space);
}

std::string refusal(const std::function<void(hid_t)>& fill) {
  const TemporaryFolder folder;
  make_plain(folder / "a.h5", fill);
  const std::string message = message_of<CheckpointError>([&] { reseal(posix_files(), folder / "a.h5"); });
  const std::string opening = "cannot load " + folder / "a.h5" + ": ";
  EXPECT_EQ(message.substr(0, opening.size()), opening);
  return message.substr(std::min(message.size(), opening.size()));
}

ContainerContents two_tensors() {
  static const std::vector<float> weights = {1, 2, 3, 4, 5, 6};
  ContainerContents contents;
  contents.add<float>("/model/wte", weights, {2, 3});
  contents.add_text("/config", "format = 1\n");
  contents.attributes = {{"/", "step", std::int64_t{3}}, {"/", "note", std::string("a b")}, {"/model", "loss", 0.5}};
  return contents;
}

// Both views of a file are equal: a file that is read by libhdf5 alone and written again has the same bytes.
TEST(reseal, a_file_that_lost_its_seal_gets_the_same_one) {
  const TemporaryFolder folder;
  const auto sealed = seal_contents(two_tensors());
  write_container(posix_files(), folder / "a.h5", two_tensors());
  EXPECT_FALSE(reseal(posix_files(), folder / "a.h5"));

  // When libhdf5 opens a file for writing, it removes the bytes after the end-of-file address.
  const hid_t file = H5Fopen((folder / "a.h5").c_str(), H5F_ACC_RDWR, H5P_DEFAULT);
  const hid_t dataset = H5Dopen2(file, "/model/wte", H5P_DEFAULT);
  const float edited[6] = {1, 2, 3, 4, 5, 6};
  H5Dwrite(dataset, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, edited);
  H5Dclose(dataset), H5Fclose(file);
  EXPECT_NE(message_of<CheckpointError>([&] { Container::load(folder / "a.h5"); }).find("it has no seal"),
            std::string::npos);

  EXPECT_TRUE(reseal(posix_files(), folder / "a.h5"));
  EXPECT_TRUE(files::read_bytes(folder / "a.h5") == sealed);
}

TEST(reseal, follows_a_link_and_keeps_it) {
  const TemporaryFolder folder;
  make_plain(folder / "a.h5", [](hid_t file) { add_numbers(file, H5T_IEEE_F32LE, 3, H5P_DEFAULT); });
  files::replace_link(posix_files(), "a.h5", folder / "latest.h5");
  EXPECT_TRUE(reseal(posix_files(), folder / "latest.h5"));
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "latest.h5"));
  EXPECT_EQ(Container::load(folder / "a.h5").values<float>("/x")[2], 1.5f);
}

TEST(reseal, chunked_datasets_and_strings_of_any_length_are_read) {
  const TemporaryFolder folder;
  make_plain(folder / "a.h5", [](hid_t file) {
    const hid_t creation = H5Pcreate(H5P_DATASET_CREATE);
    const hsize_t chunk = 4;  // the last chunk is only partly inside the dataset
    H5Pset_chunk(creation, 1, &chunk);
    add_numbers(file, H5T_IEEE_F64LE, 10, creation);
    H5Pclose(creation);
    const hid_t type = H5Tcopy(H5T_C_S1);
    H5Tset_size(type, H5T_VARIABLE);
    const hid_t space = H5Screate(H5S_SCALAR);
    const hid_t attribute = H5Acreate2(file, "note", type, space, H5P_DEFAULT, H5P_DEFAULT);
    const char* text = "from elsewhere";
    H5Awrite(attribute, type, &text);
    H5Aclose(attribute), H5Sclose(space), H5Tclose(type);
  });
  const Container c = read_plain_hdf5(folder / "a.h5");
  EXPECT_EQ(c.values<double>("/x").size(), 10u);
  EXPECT_EQ(c.values<double>("/x")[9], 1.5);
  EXPECT_EQ(c.attribute<std::string>("/", "note"), "from elsewhere");
}

TEST(reseal, damage_is_never_sealed) {
  const TemporaryFolder folder;
  auto bytes = seal_contents(two_tensors());
  bytes[bytes.size() / 2] ^= std::byte{1};
  files::write_durably(posix_files(), folder / "a.h5", bytes);
  EXPECT_NE(message_of<CheckpointError>([&] { reseal(posix_files(), folder / "a.h5"); }).find("it is damaged"),
            std::string::npos);
  bytes.pop_back();
  files::write_durably(posix_files(), folder / "a.h5", bytes);
  EXPECT_EQ(message_of<CheckpointError>([&] { reseal(posix_files(), folder / "a.h5"); }),
            "cannot load " + folder / "a.h5" + ": it is truncated or damaged");
  EXPECT_EQ(files::read_bytes(folder / "a.h5"), bytes);
}

TEST(reseal, files_that_are_not_hdf5) {
  const TemporaryFolder folder;
  std::ofstream(folder / "a.h5") << "text, and long enough to hold a superblock if it were one, which it is not";
  std::ofstream(folder / "b.h5");
  EXPECT_EQ(message_of<CheckpointError>([&] { reseal(posix_files(), folder / "a.h5"); }),
            "cannot load " + folder / "a.h5" + ": it is not an HDF5 file");
  EXPECT_EQ(message_of<CheckpointError>([&] { reseal(posix_files(), folder / "b.h5"); }),
            "cannot load " + folder / "b.h5" + ": it is empty");
  EXPECT_THROW(reseal(posix_files(), folder / "c.h5"), CheckpointError);
}

TEST(reseal, foreign_storage_is_refused) {
  const auto with_creation = [](const std::function<void(hid_t)>& set, bool write = true, hsize_t n = 4) {
    return refusal([&](hid_t file) {
      const hid_t creation = H5Pcreate(H5P_DATASET_CREATE);
      set(creation);
      add_numbers(file, H5T_IEEE_F32LE, n, creation, write);
      H5Pclose(creation);
    });
  };
  const hsize_t chunk = 4;
  EXPECT_EQ(with_creation([](hid_t p) { H5Pset_external(p, "/etc/hostname", 0, 16); }, false),
            "/x is stored in another file");
  EXPECT_EQ(with_creation([&](hid_t p) { H5Pset_chunk(p, 1, &chunk), H5Pset_deflate(p, 5); }),
            "/x is compressed or filtered");
  EXPECT_EQ(with_creation([&](hid_t p) { H5Pset_chunk(p, 1, &chunk), H5Pset_fletcher32(p); }),
            "/x is compressed or filtered");
  EXPECT_EQ(with_creation([&](hid_t p) { H5Pset_chunk(p, 1, &chunk); }, false), "/x was never written, or only partly");
  EXPECT_EQ(with_creation([](hid_t p) { H5Pset_layout(p, H5D_COMPACT); }), "/x is neither contiguous nor chunked");
  EXPECT_EQ(with_creation([](hid_t) {}, false), "/x was never written, or only partly");
  EXPECT_EQ(with_creation([](hid_t) {}, false, hsize_t{1} << 40), "/x is larger than the file");
  EXPECT_EQ(with_creation(
                [](hid_t p) {
                  const hsize_t n = 4;
                  const hid_t space = H5Screate_simple(1, &n, nullptr);
                  H5Pset_virtual(p, space, "other.h5", "/y", space);
                  H5Sclose(space);
                },
                false),
            "/x is neither contiguous nor chunked");
}

TEST(reseal, links_and_types_that_containers_do_not_hold_are_refused) {
  EXPECT_EQ(refusal([](hid_t f) { H5Lcreate_external("/etc/passwd", "/", f, "x", H5P_DEFAULT, H5P_DEFAULT); }),
            "/ contains a soft or external link");
  EXPECT_EQ(refusal([](hid_t f) { H5Lcreate_soft("/y", f, "x", H5P_DEFAULT, H5P_DEFAULT); }),
            "/ contains a soft or external link");
  EXPECT_EQ(refusal([](hid_t f) {
              add_numbers(f, H5T_IEEE_F32LE, 4, H5P_DEFAULT);
              H5Lcreate_hard(f, "/x", f, "y", H5P_DEFAULT, H5P_DEFAULT);
            }),
            "/x is linked more than once");
  EXPECT_EQ(refusal([](hid_t f) {
              const hid_t group = H5Gcreate2(f, "g", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
              H5Lcreate_hard(f, "/g", group, "again", H5P_DEFAULT, H5P_DEFAULT);
              H5Gclose(group);
            }),
            "/g is linked more than once");
  EXPECT_EQ(refusal([](hid_t f) { add_numbers(f, H5T_IEEE_F32BE, 4, H5P_DEFAULT); }),
            "/x has a type that containers do not support");
  EXPECT_EQ(refusal([](hid_t f) {
              const hid_t type = H5Tcopy(H5T_IEEE_F32LE);
              H5Tcommit2(f, "t", type, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
              H5Tclose(type);
            }),
            "/t is neither a group nor a dataset");
}

}  // namespace
}  // namespace handgrad
