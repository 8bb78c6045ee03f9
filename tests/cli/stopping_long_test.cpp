#include "cli/stopping.h"

TEST(StoppingLong, killed_a_hundred_times_nothing_acknowledged_is_lost) { handgrad::test::kill_again_and_again(100); }
