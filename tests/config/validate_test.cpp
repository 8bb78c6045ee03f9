#include "handgrad/config/validate.h"

#include <gtest/gtest.h>

#include <functional>
#include <limits>

#include "handgrad/core/errors.h"
#include "support/message.h"

namespace handgrad {
namespace {

std::string refusal(const std::function<void(Config&)>& change, std::string_view source = {}) {
  Config config;
  change(config);
  return test::message_of<ConfigError>([&] { validate(config, source); });
}

TEST(validate, the_defaults_are_valid) { EXPECT_NO_THROW(validate(Config{})); }

TEST(validate, heads) {
  EXPECT_EQ(refusal([](Config& c) { c.model.d_model = 10, c.model.n_heads = 3; }),
            "model.n_heads 3 must divide model.d_model 10: the remainder is 1");
  EXPECT_EQ(refusal([](Config& c) { c.model.d_model = 520, c.model.n_heads = 8; }),
            "model.position \"rope\" needs an even head width, got 65: model.d_model 520 / "
            "model.n_heads 8");
  EXPECT_EQ(refusal([](Config& c) { c.model.d_model = 12, c.model.n_heads = 6, c.model.n_kv_heads = 4; }),
            "model.n_kv_heads 4 does not divide model.n_heads 6: every key head needs the same number of query heads");
  EXPECT_EQ(refusal([](Config& c) { c.model.n_kv_heads = 8; }), "model.n_kv_heads 8 is more than model.n_heads 4");
  Config odd;
  odd.model.d_model = 520, odd.model.n_heads = 8, odd.model.position = PositionKind::learned;
  EXPECT_NO_THROW(validate(odd));
  EXPECT_NE(refusal([](Config& c) {
              c.model.d_model = 5, c.model.n_heads = 1, c.model.position = PositionKind::sinusoidal;
            }).find("needs an even model.d_model, got 5"),
            std::string::npos);
}

TEST(validate, rates) {
  EXPECT_EQ(refusal([](Config& c) { c.optimizer.lr = 1e-5; }),
            "optimizer.min_lr 0.0001 is above optimizer.lr 1e-05; a tenth of it is usual: optimizer.min_lr=1e-06");
  Config constant;
  constant.optimizer.lr = 1e-5, constant.schedule.kind = ScheduleKind::constant;
  EXPECT_NO_THROW(validate(constant));
}

TEST(validate, a_warm_up_longer_than_the_run_is_allowed) {
  Config config;
  config.train.steps = 10, config.schedule.warmup_steps = 10;
  EXPECT_NO_THROW(validate(config));
}

TEST(validate, ranges_hold_for_programs_too) {
  EXPECT_EQ(refusal([](Config& c) { c.model.n_layers = 0; }),
            "model.n_layers: expected an integer from 1 to 1024, got 0");
  EXPECT_EQ(refusal([](Config& c) { c.optimizer.beta2 = std::numeric_limits<double>::quiet_NaN(); }),
            "optimizer.beta2: expected a number of at least 0 and below 1, got nan");
  EXPECT_EQ(refusal([](Config& c) { c.model.norm = static_cast<NormKind>(7); }, "run.toml"),
            "run.toml: model.norm: expected one of \"rms\", \"layer\", got \"?\"");
  EXPECT_EQ(refusal([](Config& c) { c.train.batch_size = 65536, c.train.accumulation = 1024, c.model.context = 64; }),
            "train.batch_size 65536 x train.accumulation 1024 x model.context 64 is 4294967296 tokens per update; the "
            "limit is 2147483648");
}

TEST(resolve, fills_in_what_is_left_open) {
  Config config;
  EXPECT_EQ(resolve(config).model.n_kv_heads, 4);
  EXPECT_EQ(resolve(config).model.d_ff, 352);
  config.model.d_model = 96;
  EXPECT_EQ(resolve(config).model.d_ff, 256);
  config.model.feed_forward = FeedForwardKind::gelu;
  EXPECT_EQ(resolve(config).model.d_ff, 384);
  config.model.d_ff = 7, config.model.n_kv_heads = 2;
  EXPECT_EQ(resolve(config).model.d_ff, 7);
  EXPECT_EQ(resolve(config).model.n_kv_heads, 2);
}

}  // namespace
}  // namespace handgrad
