#include <limits>

#include "handgrad/checkpoint/run_folder.h"
#include "handgrad/config/describe.h"
#include "handgrad/config/parse.h"
#include "handgrad/config/resume.h"
#include "handgrad/config/split.h"
#include "handgrad/config/validate.h"
#include "handgrad/files/file_system.h"
#include "handgrad/io/container_writer.h"
#include "handgrad/io/reseal.h"
#include "misuse/refusal.h"
#include "support/temporary_folder.h"

namespace handgrad::misuse {
namespace {

const Covers covers{"checkpoint/checkpoint.h", "checkpoint/loop_state.h",
                    "checkpoint/run_folder.h", "config/config.h",
                    "config/describe.h",       "config/fields.h",
                    "config/parse.h",          "config/resume.h",
                    "config/split.h",          "config/validate.h",
                    "io/container.h",          "io/container_reader.h",
                    "io/container_writer.h",   "io/reseal.h"};

TEST(MisuseConfig, reading) {
  EXPECT_REFUSED(ConfigError, "/no/such.toml", load_config("/no/such.toml"));
  EXPECT_REFUSED(ConfigError, "", load_config(""));
  EXPECT_REFUSED(ConfigError, "", load_config("/"));
  EXPECT_REFUSED(ConfigError, "", parse_config("", "", "", {""}));
  EXPECT_REFUSED(ConfigError, "", parse_config("", "", "", {"="}));
  EXPECT_REFUSED(ConfigError, "", parse_config("", "", "", {"nosuch.key=1"}));
  EXPECT_REFUSED(ConfigError, "", parse_config("[model", "a.toml", ""));
  EXPECT_TRUE(parse_config("", "", "").given.empty());
  EXPECT_REFUSED(ConfigError, "", explain_config("no.such"));
  EXPECT_EQ(config::find_field(""), nullptr);
  EXPECT_EQ(config::find_field("model"), nullptr);
  EXPECT_FALSE(config::accepts(config::fields().front(), config::FieldValue(std::numeric_limits<double>::quiet_NaN())));
}

TEST(MisuseConfig, values) {
  Config config;
  config.model.n_heads = 0;
  EXPECT_REFUSED(ConfigError, "model.n_heads: expected", validate(config));
  config = {};
  config.optimizer.lr = std::numeric_limits<double>::quiet_NaN();
  EXPECT_REFUSED(ConfigError, "optimizer.lr", validate(config, "a.toml"));
  config = {};
  config.train.batch_size = -1;
  EXPECT_REFUSED(ConfigError, "train.batch_size", split_note(config));
  EXPECT_REFUSED(RangeError, "the context must be 1 or more, got 0", block_sequences(0));
  Config other;
  other.model.d_model = 64;
  EXPECT_REFUSED(ConfigError, "model.d_model", check_resume(Config{}, other, 0));
  other = {};
  other.train.steps = 1;
  EXPECT_REFUSED(ConfigError, "train.steps", check_resume(Config{}, other, 5));
}

TEST(MisuseIo, contents) {
  const float x[2] = {};
  const std::span<const float> two(x, 2);
  ContainerContents contents;
  EXPECT_REFUSED(ShapeError, "container: /a: the shape must match the 2 values, got (3)",
                 contents.add<float>("/a", two, {3}));
  EXPECT_REFUSED(ShapeError, "got ()", contents.add<float>("/a", two, {}));
  EXPECT_REFUSED(ShapeError, "got (-1, -2)", contents.add<float>("/a", two, {-1, -2}));
  EXPECT_REFUSED(ShapeError, "container: /a: the shape must match the 0 values, got (1)",
                 contents.add<float>("/a", {}, {1}));
  constexpr Index half = Index{1} << 62;
  EXPECT_REFUSED(ShapeError, "/a", contents.add<float>("/a", {}, {half, 4}));  // the product overflows to 0
  EXPECT_TRUE(contents.datasets.empty());
  contents.add<float>("/a", {}, {0, 5});
  contents.add_text("/b", "");
  EXPECT_EQ(contents.datasets.size(), 2u);
  contents.add<float>("", two, {2});
  EXPECT_REFUSED(CheckpointError, "is not a path", seal_contents(contents));
  ContainerContents no_data;
  no_data.datasets = {{"/a", ElementType::float32, {2}, nullptr}};
  EXPECT_REFUSED(CheckpointError, "/a has no data", seal_contents(no_data));
  no_data.datasets = {{"/a", ElementType{77}, {2}, x}};
  EXPECT_REFUSED(CheckpointError, "", seal_contents(no_data));
  EXPECT_EQ(io::element_bytes(ElementType{77}), 0u);
  EXPECT_REFUSED(DataError, "", write_container(posix_files(), "/no/such/folder/file.h5", {}));
}

TEST(MisuseIo, containers) {
  const test::TemporaryFolder folder;
  EXPECT_REFUSED(CheckpointError, "/no/such", Container::load("/no/such"));
  EXPECT_REFUSED(CheckpointError, "", Container::load(""));
  EXPECT_REFUSED(CheckpointError, "", Container::load(folder.path()));
  EXPECT_REFUSED(CheckpointError, "nothing", Container::from_bytes({}, "nothing"));
  EXPECT_REFUSED(CheckpointError, "", read_plain_hdf5("/no/such"));
  EXPECT_REFUSED(CheckpointError, "", reseal(posix_files(), "/no/such"));
  const float x = 1.0f;
  ContainerContents contents;
  contents.add<float>("/a", std::span(&x, 1), {1});
  contents.attributes = {{"/", "n", std::int64_t{3}}};
  const Container container = Container::from_bytes(seal_contents(contents), "one");
  EXPECT_REFUSED(CheckpointError, "/b", container.values<float>("/b"));
  EXPECT_REFUSED(CheckpointError, "/a", container.values<double>("/a"));
  EXPECT_REFUSED(CheckpointError, "", container.text(""));
  EXPECT_REFUSED(CheckpointError, "m", container.attribute<double>("/", "m"));
  EXPECT_REFUSED(CheckpointError, "n", container.attribute<std::string>("/", "n"));
  EXPECT_EQ(container.find(""), nullptr);
  EXPECT_EQ(container.find_attribute("", ""), nullptr);
  DatasetEntry foreign = container.datasets().front();
  foreign.offset = std::numeric_limits<std::uint64_t>::max() - 1;
  EXPECT_REFUSED(CheckpointError, "are not inside its", container.bytes_of(foreign));
  foreign.offset = 0, foreign.bytes = 1u << 30;
  EXPECT_REFUSED(CheckpointError, "one: /a: bytes 0 to", container.bytes_of(foreign));
}

TEST(MisuseCheckpoint, files) {
  const test::TemporaryFolder folder;
  EXPECT_REFUSED(CheckpointError, "/no/such", Checkpoint::load("/no/such"));
  EXPECT_REFUSED(CheckpointError, "", Checkpoint::load(""));
  EXPECT_REFUSED(CheckpointError, "", find_checkpoint("/no/such"));
  EXPECT_REFUSED(CheckpointError, "", find_checkpoint(folder.path()));
  EXPECT_FALSE(newest_checkpoint(folder.path()).checkpoint.has_value());
  EXPECT_TRUE(checkpoint_steps("/no/such").empty());
  EXPECT_FALSE(is_run_folder(""));
  LoopState loop;
  EXPECT_FALSE(note_evaluation(loop, std::numeric_limits<double>::quiet_NaN()));
}

}  // namespace
}  // namespace handgrad::misuse
