// Loads containers that are damaged, truncated, not HDF5, or made to attack the decoder.
#include <gtest/gtest.h>

#include "handgrad/core/errors.h"
#include "handgrad/core/random.h"
#include "handgrad/io/container_reader.h"
#include "handgrad/io/container_writer.h"
#include "support/message.h"
#include "support/temporary_folder.h"
#include "support/trailer_forger.h"

namespace handgrad {
namespace {

using test::Bytes;
using test::IndexForger;
using test::message_of;
using test::put_at;

constexpr std::uint64_t mebi = 1 << 20;

const Bytes& small_file() {
  static const Bytes file = [] {
    const std::vector<float> weights = {1, 2, 3, 4, 5, 6};
    ContainerContents contents;
    contents.add<float>("/model/wte", weights, {2, 3});
    contents.add_text("/config", "format = 1\n");
    contents.attributes = {{"/", "step", std::int64_t{3}}};
    return seal_contents(contents);
  }();
  return file;
}

std::string refusal(const Bytes& file) {
  return message_of<CheckpointError>([&] { Container::from_bytes(file, "a.h5"); });
}

bool is_refused(const Bytes& file) {
  try {
    Container::from_bytes(file, "a.h5");
    return false;
  } catch (const CheckpointError&) {
    return true;
  }
}

TEST(damage, every_flipped_bit_is_seen) {
  Bytes file = small_file();
  EXPECT_FALSE(is_refused(file));
  for (std::size_t bit = 0; bit < 8 * file.size(); ++bit) {
    file[bit / 8] ^= std::byte{1} << (bit % 8);
    EXPECT_TRUE(is_refused(file)) << "bit " << bit;
    file[bit / 8] ^= std::byte{1} << (bit % 8);
  }
}

TEST(damage, every_truncation_is_seen) {
  for (std::size_t size = 0; size < small_file().size(); ++size) {
    EXPECT_TRUE(is_refused(Bytes(small_file().begin(), small_file().begin() + static_cast<std::ptrdiff_t>(size))))
        << size;
  }
}

TEST(damage, zeroed_blocks_and_appended_bytes_are_seen) {
  for (std::size_t at = 0; at + 64 <= small_file().size(); at += 32) {
    Bytes file = small_file();
    const Bytes before(file);
    std::fill_n(file.begin() + static_cast<std::ptrdiff_t>(at), 64, std::byte{0});
    if (file != before) {
      EXPECT_TRUE(is_refused(file)) << at;
    }
  }
  Bytes longer = small_file();
  longer.push_back(std::byte{0});
  EXPECT_EQ(refusal(longer), "cannot load a.h5: it is truncated or damaged: its seal is missing");
}

TEST(damage, the_damaged_dataset_is_named) {
  const Container sound = Container::from_bytes(small_file(), "a.h5");
  for (const DatasetEntry& d : sound.datasets()) {
    Bytes file = small_file();
    file[d.offset + d.bytes - 1] ^= std::byte{1};
    EXPECT_EQ(refusal(file), "cannot load a.h5: it is damaged in " + d.path);
  }
  Bytes file = small_file();
  file[100] ^= std::byte{1};
  EXPECT_EQ(refusal(file), "cannot load a.h5: it is damaged outside its datasets");
  file = small_file();
  file[test::image_bytes(file)] ^= std::byte{1};
  EXPECT_EQ(refusal(file), "cannot load a.h5: it is damaged in its index");
  file = small_file();
  file[file.size() - 45] ^= std::byte{1};
  EXPECT_EQ(refusal(file), "cannot load a.h5: it is damaged in its seal");
}

TEST(damage, foreign_and_cut_files_are_told_apart) {
  EXPECT_EQ(refusal({}), "cannot load a.h5: it is empty");
  EXPECT_EQ(refusal(Bytes(100, std::byte{'x'})), "cannot load a.h5: it is not an HDF5 file");
  const Bytes& whole = small_file();
  const auto first = [&](std::size_t size) {
    return Bytes(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
  };
  EXPECT_EQ(refusal(first(96)), "cannot load a.h5: it is truncated to 96 bytes");
  EXPECT_EQ(refusal(first(whole.size() - 1)), "cannot load a.h5: it is truncated or damaged: its seal is missing");
  EXPECT_EQ(refusal(first(test::image_bytes(whole))),
            "cannot load a.h5: it has no seal: another program wrote it, or it was cut; `handgrad inspect --reseal` "
            "seals it if it is sound");
}

TEST(damage, a_newer_format_is_refused) {
  Bytes file = small_file();
  put_at<std::uint32_t>(file, file.size() - 56, 3);
  test::seal_again(file);
  EXPECT_EQ(refusal(file), "cannot load a.h5: it was written by a newer handgrad: format 3, this one reads up to 2");
  put_at<std::uint32_t>(file, file.size() - 56, 0);
  test::seal_again(file);
  EXPECT_EQ(refusal(file), "cannot load a.h5: its seal is malformed");
}

TEST(damage, files_that_cannot_be_read) {
  const test::TemporaryFolder folder;
  EXPECT_EQ(message_of<CheckpointError>([&] { Container::load(folder / "absent.h5"); }),
            "cannot read " + folder / "absent.h5" + ": no such file or directory");
  EXPECT_EQ(message_of<CheckpointError>([&] { Container::load(folder.path()); }),
            "cannot read " + folder.path() + ": is a directory");
}

TEST(hostile, lengths_that_do_not_add_up) {
  for (const std::size_t at : {std::size_t{48}, std::size_t{40}}) {
    for (const std::uint64_t value : {std::uint64_t{0}, mebi, UINT64_MAX, UINT64_MAX - 63, std::uint64_t{1} << 63}) {
      Bytes file = small_file();
      put_at(file, file.size() - at, value);
      test::seal_again(file);
      EXPECT_EQ(refusal(file), "cannot load a.h5: its seal is malformed");
    }
  }
}

TEST(hostile, indices_with_a_seal_that_holds) {
  const std::uint64_t image = test::image_bytes(small_file());
  const auto index = [] { return IndexForger(); };
  const std::pair<std::string, const char*> cases[] = {
      {"", "its index ends early"},
      {index().counts(1, 0), "its index ends early"},
      {index().counts(UINT32_MAX, 0), "4294967295 datasets and 0 attributes are too many"},
      {index().counts(0, UINT32_MAX), "0 datasets and 4294967295 attributes are too many"},
      {index().counts(0, 0).number('x'), "its index has extra bytes at the end"},
      {index().counts(1, 0).dataset("/a", 1, image, 4), "/a is not inside the file"},
      {index().counts(1, 0).dataset("/a", 1, UINT64_MAX - 7, 4), "/a is not inside the file"},
      {index().counts(1, 0).dataset("/a", 1, 1, 4), "/a is not inside the file"},
      {index().counts(1, 0).dataset("/a", Index{1} << 40, 0, std::uint64_t{1} << 42), "/a is not inside the file"},
      {index().counts(1, 0).dataset("/a", INT64_MAX, 0, 4), "a shape is negative or too large"},
      {index().counts(1, 0).dataset("/a", -1, 0, 4), "a shape is negative or too large"},
      {index().counts(1, 0).dataset("/a", 2, 0, 4), "/a has 4 bytes, which is not the size of its shape"},
      {index().counts(1, 0).dataset("/a", 1, 0, 4, 0), "/a has the unknown type 0"},
      {index().counts(1, 0).dataset("/a", 1, 0, 4, 6), "/a has the unknown type 6"},
      {index().counts(1, 0).text("/a").number('\1').number('\11'), "/a has 9 axes"},
      {index().counts(1, 0).dataset("a", 1, 0, 4), "\"a\" is not a path of names joined by slashes"},
      {index().counts(1, 0).dataset("/a\n", 1, 0, 4), "\"/a?\" is not a path of names joined by slashes"},
      {index().counts(2, 0).dataset("/a", 1, 0, 4).dataset("/a", 1, 8, 4), "/a is a duplicate or out of order"},
      {index().counts(2, 0).dataset("/b", 1, 0, 4).dataset("/a", 1, 8, 4), "/a is a duplicate or out of order"},
      {index().counts(2, 0).dataset("/a", 4, 0, 16).dataset("/b", 1, 8, 4), "/a and /b overlap"},
      {index().counts(2, 0).dataset("/a", 1, 0, 4).dataset("/a/b", 1, 8, 4), "/a/b is inside another dataset"},
      {index().counts(1, 0).dataset("/a", 1, 0, 4), "/a does not have the hash in the index"},
      {index().counts(0, 1).text("/").text("a").number('\0'), "it has an attribute of an unknown type"},
      {index().counts(0, 1).text("/").text("a").number('\3').text(std::string(4097, 'x')),
       "the attribute a is too long or contains a NUL"},
      {index().counts(0, 2).text("/").text("a").number('\3').text("").text("/").text("a").number('\3').text(""),
       "the attribute a is a duplicate or out of order"},
  };
  for (const auto& [forged, message] : cases) {
    EXPECT_EQ(refusal(test::with_index(small_file(), forged)), std::string("cannot load a.h5: ") + message);
  }
}

// Random bytes as an index, with a valid seal: the result is an error or a container, never a crash. Meant for the
// sanitizers.
TEST(hostile, mutated_indices_never_crash) {
  const std::size_t image = test::image_bytes(small_file());
  const std::size_t index = small_file().size() - 64 - image;
  const Random random(1, Stream::audit);
  for (std::uint64_t round = 0; round < 5000; ++round) {
    Bytes file = small_file();
    for (std::uint64_t change = 0; change <= round % 4; ++change) {
      const std::uint64_t bits = random.bits(8 * round + change);
      file[image + bits % index] = static_cast<std::byte>(bits >> 32);
    }
    test::seal_again(file);
    is_refused(file);
  }
}

}  // namespace
}  // namespace handgrad
