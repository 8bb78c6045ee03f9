#include <filesystem>
#include <map>

#include "misuse/refusal.h"

// A test of this folder calls every public header with wrong arguments.

namespace handgrad::misuse {
namespace {

// Headers whose functions check nothing on purpose, with the reason.
const std::map<std::string, std::string> unchecked{
    {"core/choices.h", "names of choices"},
    {"core/numerics.h", "a record"},
    {"core/types.h", "names of types"},
    {"ops/row_statistics.h", "spans, which the kernels of softmax and of the norms check"},
    {"nn/dropout_sites.h", "numbers of places, a function of its arguments"},
};

TEST(Misuse, covers_every_public_header) {
  const std::filesystem::path root = HANDGRAD_SOURCE_DIR "/include/handgrad";
  std::set<std::string> present;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root)) {
    if (entry.path().extension() != ".h") continue;
    const std::string header = std::filesystem::relative(entry.path(), root).generic_string();
    present.insert(header);
    EXPECT_NE(covered_headers().contains(header), unchecked.contains(header))
        << header << ": add its functions to a test in tests/misuse, with empty, default, foreign and too small and "
        << "large arguments, or name the reason why it checks nothing";
  }
  for (const std::string& header : covered_headers()) EXPECT_TRUE(present.contains(header)) << header << " is gone";
}

}  // namespace
}  // namespace handgrad::misuse
