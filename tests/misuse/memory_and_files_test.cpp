#include <filesystem>
#include <limits>

#include "handgrad/checkpoint/run_folder.h"
#include "handgrad/config/validate.h"
#include "handgrad/core/memory.h"
#include "handgrad/files/durable_write.h"
#include "handgrad/files/encoding.h"
#include "handgrad/files/output_file.h"
#include "handgrad/text/encoding_check.h"
#include "handgrad/text/unknown_characters.h"
#include "handgrad/train/memory.h"
#include "handgrad/train/run.h"
#include "misuse/refusal.h"
#include "support/temporary_folder.h"

namespace handgrad::misuse {
namespace {

const Covers covers{"files/encoding.h",      "core/memory.h",  "files/output_file.h",
                    "text/encoding_check.h", "train/memory.h", "text/unknown_characters.h"};

TEST(MisuseFiles, outputs_that_a_user_names) {
  const test::TemporaryFolder folder;
  EXPECT_REFUSED(DataError, "cannot write", files::write_output(posix_files(), "", "text"));
  EXPECT_REFUSED(DataError, "is a directory", files::write_output(posix_files(), folder.path(), "text"));
  EXPECT_REFUSED(DataError, "no such file or directory",
                 files::write_output(posix_files(), folder / "no/file", "text"));
  std::filesystem::create_symlink("loop", folder / "loop");
  EXPECT_REFUSED(DataError, "too many levels of symbolic links", files::link_target(folder / "loop"));
  EXPECT_EQ(files::link_target(""), "");
  EXPECT_REFUSED(DataError, "cannot rename", files::rename_file(posix_files(), folder / "none", folder / "new"));
}

TEST(MisuseFiles, checkpoints_of_no_run) {
  const test::TemporaryFolder folder;
  EXPECT_TRUE(set_aside_later_checkpoints(posix_files(), folder / "none", -1).empty());
  EXPECT_FALSE(newest_checkpoint("").checkpoint);
  EXPECT_REFUSED(CheckpointError, "", find_checkpoint(""));
}

TEST(MisuseText, encodings) {
  EXPECT_EQ(files::guess_wide_encoding("").name, "");
  EXPECT_EQ(files::guess_encoding("").name, "");
  EXPECT_EQ(files::conversion_hint({}, ""), "");
  EXPECT_NO_THROW(text::check_encoding("", ""));
  EXPECT_REFUSED(DataError, "", text::check_encoding("\xff", ""));
  EXPECT_EQ(text::composed_letter(0, 0), 0u);
  EXPECT_EQ(text::composed_letter(0xffffffffu, 0xffffffffu), 0u);
}

TEST(MisuseText, unknown_characters) {
  const CharTokenizer letters = CharTokenizer::from_text("ab");
  EXPECT_TRUE(encode_text(letters, "", "").empty());
  EXPECT_REFUSED(DataError, "'c'", encode_text(letters, "abc", "prompt"));
  EXPECT_REFUSED(DataError, "", encode_text(letters, "\xff", "prompt"));
  EXPECT_TRUE(encode_corpus(letters, Corpus{}, "").empty());
  Corpus without_files;
  without_files.text = "abc";
  EXPECT_REFUSED(DataError, "'c'", encode_corpus(letters, without_files, "data.files"));
}

TEST(MisuseTrain, memory) {
  constexpr Index largest = std::numeric_limits<Index>::max();
  Config config;
  EXPECT_REFUSED(ConfigError, "", estimate_memory(config, 0, 0));  // not resolved
  config.model.vocab_size = 10;
  config = resolve(config);
  EXPECT_REFUSED(RangeError, "memory: bytes and tokens must be 0 or more, got -1 and 0",
                 estimate_memory(config, -1, 0));
  EXPECT_REFUSED(RangeError, "got 0 and -2", estimate_memory(config, 0, -2));
  EXPECT_GT(estimate_memory(config, largest, largest).peak(), 0) << "held at the largest number";
  EXPECT_REFUSED(ResourceError, "memory: ", require_memory(largest, ""));
  EXPECT_REFUSED(ResourceError, "memory: ", check_memory_for_text(largest));
  EXPECT_NO_THROW(require_memory(-1, ""));
  EXPECT_REFUSED(ConfigError, "", estimate_audit_memory(ModelConfig{}));
  EXPECT_GT(available_memory_bytes(), 0);
}

TEST(MisuseTrain, learning_rate_and_end) {
  const Config config;
  EXPECT_REFUSED(RangeError, "learning_rate: the step must be 0 or more, got -1", learning_rate(config, -1));
  LoopState loop;
  loop.step = -5;
  EXPECT_FALSE(is_done(config, loop));
}

}  // namespace
}  // namespace handgrad::misuse
