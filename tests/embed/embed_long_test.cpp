#include <gtest/gtest.h>

#include <cstdlib>

#include "handgrad/files/read_file.h"
#include "support/temporary_folder.h"

// The installed library in a program that is built without this project's flags: with the program's own flags, and with
// flags that change floating-point arithmetic.

namespace handgrad {
namespace {

TEST(EmbedLong, a_program_builds_against_the_installed_library_and_runs) {
  const test::TemporaryFolder folder;
  const auto run = [&](const std::string& command) {
    const std::string log = folder / "log";
    const int status = std::system(("( cd " + folder.path() + " && " + command + " ) > " + log + " 2>&1").c_str());
    EXPECT_EQ(status, 0) << command << "\n" << files::read_file(log);
    return status == 0;
  };
  const std::string prefix = folder / "prefix";
  ASSERT_TRUE(run("cmake --install " HANDGRAD_BINARY_DIR " --prefix " + prefix));
  for (const std::string flags : {"", "-O3 -march=native -ffast-math"}) {
    const std::string build = folder / (flags.empty() ? "plain" : "hostile");
    ASSERT_TRUE(run("env -u CXXFLAGS cmake -S " HANDGRAD_SOURCE_DIR "/tests/embed -B " + build +
                    " -DCMAKE_PREFIX_PATH=" + prefix + " '-DCMAKE_CXX_FLAGS=" + flags + "'"));
    ASSERT_TRUE(run("cmake --build " + build));
    EXPECT_TRUE(run(build + "/embed"));
    EXPECT_TRUE(run(build + "/own_operation"));
  }
}

}  // namespace
}  // namespace handgrad
