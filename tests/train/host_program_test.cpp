#include <cfenv>
#include <csignal>

#include "support/signal_storm.h"
#include "support/training.h"

// A host program may handle signals and change the rounding mode during training; the bits do not change.

namespace handgrad {
namespace {

Config wide_config() {
  Config config = test::tiny_config();
  config.model.d_model = 64, config.model.d_ff = 96, config.model.context = 32;
  config.train.batch_size = 8, config.train.steps = 30, config.model.dropout = 0.1;
  return config;
}

std::string trained_bits(Index steps) {
  const Config config = wide_config();
  Trainer trainer(config, test::tiny_source(config, 2000));
  for (Index i = 0; i < steps; ++i) trainer.step();
  return test::state_of(trainer);
}

TEST(HostProgram, a_storm_of_signals_changes_no_bit_and_harms_nothing) {
  const ThreadScope scope(2);
  const std::string expected = trained_bits(20);
  const test::SignalStorm storm({SIGALRM, SIGPROF, SIGINT});
  for (int round = 0; round < 3 || (storm.delivered() < 500 && round < 100); ++round) {
    ASSERT_EQ(trained_bits(20), expected);
  }
  EXPECT_EQ(storm.delivered_inside_products(), 0);
  EXPECT_GT(storm.delivered(), 100);
}

TEST(HostProgram, its_rounding_mode_changes_no_bit_and_is_restored) {
  const ThreadScope scope(2);
  const std::string expected = trained_bits(5);
  Config config = wide_config();
  for (const int mode : {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO}) {
    std::fesetround(mode);
    Trainer trainer(config, test::tiny_source(config, 2000));
    for (int i = 0; i < 5; ++i) trainer.step();
    trainer.evaluate();
    EXPECT_EQ(std::fegetround(), mode);
    std::fesetround(FE_TONEAREST);
    EXPECT_EQ(test::state_of(trainer) == expected, true) << mode;
  }
}

}  // namespace
}  // namespace handgrad
