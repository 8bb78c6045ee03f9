#include <fstream>

#include "accuracy/table.h"

namespace handgrad::test {
namespace {

// A million inputs each. Writes the measured table to the build folder.
TEST(Accuracy, of_a_million_inputs_each_is_what_the_table_says) {
  const auto table = expect_documented(1000000);
  std::ofstream(HANDGRAD_BINARY_DIR "/accuracy.md") << to_markdown(table);
}

}  // namespace
}  // namespace handgrad::test
