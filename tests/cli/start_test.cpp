#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "support/command_line.h"

// Starts the program by other means than a shell, with unusual settings of OpenMP, and as process 1.

namespace handgrad::test {
namespace {

class Start : public ::testing::Test {
 protected:
  void SetUp() override { line_.prepare(); }
  // Unsets the variables that prevent the program from executing itself again.
  int plain(const std::string& lines) const {
    return line_.shell("unset OMP_WAIT_POLICY OMP_NUM_THREADS GOMP_SPINCOUNT OMP_PROC_BIND\n" + lines);
  }
  CommandLine line_;
};

TEST_F(Start, by_the_dynamic_loader_it_is_itself_and_not_the_loader) {
  const std::string loader = "/lib64/ld-linux-x86-64.so.2";
  if (!std::filesystem::exists(loader)) GTEST_SKIP() << "no " << loader << " here";
  EXPECT_EQ(plain(loader + " $h --version > out"), 0);
  EXPECT_EQ(line_.read("out").rfind("handgrad ", 0), 0u) << line_.read("out");
  EXPECT_EQ(plain(loader + " $h train tiny.toml --out run > out"), 0);
  EXPECT_TRUE(line_.exists("run/checkpoints/step-00000006.h5"));
}

TEST_F(Start, without_a_name_of_its_own) {
  EXPECT_EQ(plain("(exec -a '' $h --version) > out"), 0);
  EXPECT_EQ(line_.read("out").rfind("handgrad ", 0), 0u);
}

TEST_F(Start, a_malformed_number_of_threads_is_complained_of_once) {
  EXPECT_EQ(plain("OMP_NUM_THREADS=abc $h --version > out 2> err"), 0);
  const std::string err = line_.read("err");
  const std::size_t first = err.find("OMP_NUM_THREADS");
  EXPECT_NE(first, std::string::npos) << "by libgomp";
  EXPECT_EQ(err.find("OMP_NUM_THREADS", first + 1), std::string::npos) << err;
}

TEST_F(Start, numbers_of_threads_have_a_limit_and_are_shown_as_they_are) {
  EXPECT_EQ(plain("OMP_NUM_THREADS=100000 $h train tiny.toml 2> err"), 2);
  EXPECT_EQ(line_.read("err"), "error: OMP_NUM_THREADS: expected 1 to 1024, got 100000\n");
  EXPECT_FALSE(line_.exists("runs"));
  EXPECT_EQ(plain("OMP_THREAD_LIMIT=1 $h train tiny.toml --threads 2 > out"), 0);
  EXPECT_NE(line_.read("out").find("\n1 thread, "), std::string::npos) << line_.read("out");
}

TEST_F(Start, a_program_bound_to_its_cores_still_sees_all_of_them) {
  EXPECT_EQ(plain("nproc > cores; OMP_PROC_BIND=true $h train tiny.toml > out"), 0);
  const std::string cores = line_.read("cores").substr(0, line_.read("cores").find('\n'));
  EXPECT_NE(line_.read("out").find("\n" + cores + " thread"), std::string::npos) << line_.read("out");
}

// Process 1 of a container has no default actions: a signal without a handler has no effect.
TEST_F(Start, as_process_1_it_answers_signals) {
  const std::string as_first = "unshare --pid --fork --kill-child --mount-proc ";
  if (::geteuid() != 0 || line_.shell(as_first + "true 2> err") != 0) {
    GTEST_SKIP() << "no process namespace can be made here: " << line_.read("err");
  }
  ASSERT_EQ(line_.run({"train", "tiny.toml", "--out", "run"}).exit_code, 0);
  // The program is the child of unshare.
  const std::string send =
      "for i in $(seq 600); do kill -$1 $(cat /proc/$2/task/$2/children) 2>/dev/null && break; sleep 0.05; done\n";
  line_.write("send", send);
  for (const std::string command : {"generate run -n 100000000 > out",
                                    "bench tiny.toml --steps 1000000 --set "
                                    "model.vocab_size=64 > out"}) {
    EXPECT_EQ(line_.shell(as_first + "$h " + command + " & u=$!\nsleep 0.3\nbash send TERM $u\nwait $u"), 143)
        << command;
  }
  EXPECT_EQ(line_.shell(as_first + "$h train tiny.toml --out long --set train.steps=10000000 > out 2> err & u=$!\n" +
                        "for i in $(seq 600); do grep -q '^step 1 ' out && break; sleep 0.05; done\n" +
                        "bash send TERM $u\nwait $u"),
            143);
  EXPECT_NE(line_.read("out").find("stopped after step"), std::string::npos);
}

}  // namespace
}  // namespace handgrad::test
