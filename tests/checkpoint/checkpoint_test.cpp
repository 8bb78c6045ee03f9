#include "handgrad/checkpoint/checkpoint.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "handgrad/config/describe.h"
#include "handgrad/core/errors.h"
#include "handgrad/files/durable_write.h"
#include "handgrad/files/file_system.h"
#include "handgrad/files/read_file.h"
#include "support/checkpoint_editor.h"
#include "support/message.h"
#include "support/temporary_folder.h"
#include "support/training.h"

namespace handgrad {
namespace {

using test::CheckpointEditor;
using test::edit_checkpoint;
using test::message_of;
using test::TemporaryFolder;
using test::tiny_config;
using test::tiny_source;

// A trainer after five steps, and its checkpoint.
struct Saved {
  TemporaryFolder folder;
  Config config;
  Trainer trainer;
  std::string path = folder / "step-00000005.h5";

  explicit Saved(const Config& c = tiny_config()) : config(c), trainer(c, tiny_source(c)) {
    test::train_to(trainer, 5);
    trainer.evaluate();
    trainer.save(path);
  }
};

class CheckpointTest : public test::OneThread {};

TEST_F(CheckpointTest, gives_back_what_was_saved) {
  Saved saved;
  const Checkpoint checkpoint = Checkpoint::load(saved.path);
  const CausalLm<float> model = checkpoint.model<float>();
  EXPECT_EQ(test::bytes_of(model.store().values(), model.store().flat_size()), test::weights_of(saved.trainer));
  EXPECT_EQ(checkpoint.loop().step, 5);
  EXPECT_EQ(checkpoint.loop().updates, 5);
  EXPECT_EQ(checkpoint.loop().tokens, 5 * 4 * 8);
  EXPECT_EQ(checkpoint.loop().best_loss, saved.trainer.loop().best_loss);
  EXPECT_EQ(checkpoint.loop().best_step, 5);
  EXPECT_EQ(checkpoint.tokenizer()->fingerprint(), saved.trainer.source().tokenizer().fingerprint());
  EXPECT_EQ(checkpoint.data_fingerprint(), saved.trainer.source().fingerprint());
  EXPECT_EQ(to_toml(checkpoint.config()), to_toml(saved.trainer.config()));
}

TEST_F(CheckpointTest, names_every_tensor_and_its_moments) {
  Saved saved;
  const Container container = Container::load(saved.path);
  const auto& store = saved.trainer.model().store();
  for (const Parameter& p : store.parameters()) {
    const auto weights = container.values<float>("/model/" + p.name);
    EXPECT_EQ(weights.size(), static_cast<std::size_t>(p.shape.size()));
    EXPECT_EQ(std::memcmp(weights.data(), store.values() + p.offset, weights.size_bytes()), 0) << p.name;
    for (std::size_t i = 0; i < 2; ++i) {
      const auto moment = container.values<float>("/optimizer/" + p.name + (i == 0 ? "/m" : "/v"));
      EXPECT_EQ(std::memcmp(moment.data(), saved.trainer.optimizer().state(i).data() + p.offset, moment.size_bytes()), 0);
      EXPECT_TRUE(std::any_of(moment.begin(), moment.end(), [](float x) { return x != 0.0f; })) << p.name;
    }
  }
  // A tied embedding is one dataset.
  EXPECT_EQ(container.find("/model/head/weight"), nullptr);
}

TEST_F(CheckpointTest, the_same_state_is_the_same_file) {
  Saved saved;
  saved.trainer.save(saved.folder / "again.h5");
  EXPECT_EQ(files::read_file(saved.path), files::read_file(saved.folder / "again.h5"));
}

TEST_F(CheckpointTest, a_state_that_is_not_finite_is_not_stored) {
  Saved saved;
  const std::string before = files::read_file(saved.path);
  const auto refusal = [&](float& value, float planted) {
    const float kept = value;
    value = planted;
    const std::string message = message_of<NonFiniteError>([&] { saved.trainer.save(saved.path); });
    value = kept;
    EXPECT_EQ(files::read_file(saved.path), before);
    EXPECT_EQ(files::list_folder(posix_files(), saved.folder.path()).size(), 1u);
    return message;
  };
  const Parameter p = saved.trainer.model().store().parameters()[1];
  EXPECT_EQ(refusal(saved.trainer.mutable_model().store().mutable_values()[p.offset + 2], std::nanf("")),
            "checkpoint: /model/" + p.name + "[2] must be finite, got nan");
  EXPECT_EQ(refusal(saved.trainer.optimizer().state(0)[p.offset], -INFINITY),
            "checkpoint: /optimizer/" + p.name + "/m[0] must be finite, got -inf");
  EXPECT_EQ(refusal(saved.trainer.optimizer().state(1)[p.offset], INFINITY),
            "checkpoint: /optimizer/" + p.name + "/v[0] must be finite, got inf");
}

// The message of the step that refuses the edited file: loading, making the model, or resuming.
std::string refusal(const std::function<void(CheckpointEditor&)>& edit) {
  Saved saved;
  edit_checkpoint(saved.path, edit);
  const std::string message = message_of<CheckpointError>([&] {
    const Checkpoint checkpoint = Checkpoint::load(saved.path);
    checkpoint.model<float>();
    Trainer::resume(checkpoint, checkpoint.config(), tiny_source(saved.config));
  });
  EXPECT_EQ(message.find('\n'), std::string::npos);
  const std::size_t at = message.find("cannot load " + saved.path + ": ");
  EXPECT_NE(at, std::string::npos) << message;
  return at == std::string::npos ? message : message.substr(at + saved.path.size() + 14);
}

const std::string down = "/model/blocks/0/feed_forward/down/weight";

TEST_F(CheckpointTest, a_file_with_a_number_that_is_not_finite_is_refused) {
  EXPECT_EQ(refusal([](CheckpointEditor& e) { e.floats(down)[7] = std::nanf(""); }), down + "[7] is nan");
  EXPECT_EQ(refusal([](CheckpointEditor& e) { e.floats("/optimizer/embedding/weight/v")[0] = INFINITY; }),
            "/optimizer/embedding/weight/v[0] is inf");
}

TEST_F(CheckpointTest, tensors_that_do_not_fit_its_config_are_all_named) {
  const std::string more = refusal([](CheckpointEditor& e) { e.edit_config("n_layers = 1", "n_layers = 2"); });
  EXPECT_NE(more.find("/model/blocks/1/attention/qkv/weight is missing"), std::string::npos) << more;
  EXPECT_NE(more.find("; /model/blocks/1/feed_forward/down/weight is missing"), std::string::npos) << more;

  EXPECT_EQ(refusal([](CheckpointEditor& e) {
              e.set_shape(down, {24, 16});
            }),
            down + " is (24, 16), expected (16, 24)");
  EXPECT_EQ(refusal([](CheckpointEditor& e) { e.rename(down, down + "s"); }),
            down + " is missing; " + down + "s is unknown");
  EXPECT_EQ(refusal([](CheckpointEditor& e) { e.add("/model/blocks/1/extra", {1.0f}); }),
            "/model/blocks/1/extra is unknown");
  EXPECT_EQ(refusal([](CheckpointEditor& e) { e.add("/optimizer/extra/m", {1.0f}); }), "/optimizer/extra/m is unknown");
  EXPECT_EQ(refusal([](CheckpointEditor& e) { e.add("/extra", {1.0f}); }), "/extra is unknown");
  EXPECT_EQ(refusal([](CheckpointEditor& e) { e.remove("/optimizer/embedding/weight/m"); }),
            "/optimizer/embedding/weight/m is missing");
  EXPECT_EQ(refusal([](CheckpointEditor& e) { e.edit_config("tie_embeddings = true", "tie_embeddings = false"); }),
            "/model/head/weight is missing");
  EXPECT_EQ(refusal([](CheckpointEditor& e) {
              e.edit_config("d_model = 16", "d_model = 24");
            }).find("/model/embedding/weight is (16, 16), expected (16, 24)"),
            0u);
  EXPECT_EQ(refusal([](CheckpointEditor& e) { e.edit_config("vocab_size = 16", "vocab_size = 17"); }),
            "the tokenizer has 16 tokens, but model.vocab_size is 17");
}

TEST_F(CheckpointTest, a_config_that_cannot_be_is_refused) {
  EXPECT_EQ(refusal([](CheckpointEditor& e) { e.edit_config("format = 2", "format = 3"); }),
            "/config:1: format: written by a newer handgrad: format 3, this one reads up to 2");
  EXPECT_EQ(refusal([](CheckpointEditor& e) { e.set_attribute("/loop", "updates", std::int64_t{6}); }),
            "/loop/updates must be at most /loop/step, got 6 and 5");
  EXPECT_EQ(refusal([](CheckpointEditor& e) { e.set_attribute("/loop", "best_step", std::int64_t{-1}); }),
            "/loop/best_step must be at least 0, got -1");
}

TEST_F(CheckpointTest, another_container_is_no_checkpoint) {
  const TemporaryFolder folder;
  ContainerContents contents;
  contents.add_text("/greeting", "hello");
  write_container(posix_files(), folder / "a.h5", contents);
  EXPECT_EQ(message_of<CheckpointError>([&] { Checkpoint::load(folder / "a.h5"); }),
            "cannot load " + folder / "a.h5" + ": it has no /config");
}

}  // namespace
}  // namespace handgrad
