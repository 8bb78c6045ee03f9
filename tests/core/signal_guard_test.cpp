#include "core/signal_guard.h"

#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <stdexcept>
#include <thread>

#include "handgrad/core/gemm.h"
#include "handgrad/core/parallel.h"
#include "support/signal_storm.h"
#include "support/values.h"

namespace handgrad {
namespace {

using gemm::multiply;
using gemm::Store;

using test::SignalStorm;

// Signals blocked on the calling thread, those included that pthread_sigmask() does not show.
std::uint64_t kernel_mask() {
  std::uint64_t mask = 0;
  ::syscall(SYS_rt_sigprocmask, SIG_BLOCK, nullptr, &mask, sizeof mask);
  return mask;
}

bool blocks(std::uint64_t mask, int signal) { return (mask >> (signal - 1) & 1) != 0; }

struct Product {
  explicit Product(Index size)
      : a(test::random_tensor<float>({size, size}, 1)), b(test::random_tensor<float>({size, size}, 2)) {}
  void multiply_into(Tensor<float>& c) const { multiply<float>({a.rows()}, {b.rows()}, 1.0f, Store::assign, c.rows()); }
  Tensor<float> a, b;
};

TEST(SignalGuard, no_handler_runs_inside_a_product_and_bits_stay) {
  const Product product(96);
  Tensor<float> expected({96, 96});
  product.multiply_into(expected);
  for (const int threads : {1, 2}) {
    const ThreadScope scope(threads);
    const SignalStorm storm({SIGALRM, SIGPROF, SIGINT, SIGUSR1});
    std::atomic<int> different = 0;
    for (int round = 0; round < 10000 && (round < 40 || storm.delivered() < 200); ++round) {
      parallel_tiles(16, [&](Index) {
        Tensor<float> c({96, 96});
        product.multiply_into(c);
        if (std::memcmp(c.data(), expected.data(), sizeof(float) * 96 * 96) != 0) ++different;
      });
      Tensor<float> c({96, 96});
      product.multiply_into(c);  // outside a region
    }
    EXPECT_GT(storm.delivered(), 100) << threads << " threads";
    EXPECT_EQ(storm.delivered_inside_products(), 0) << threads << " threads";
    EXPECT_EQ(different, 0) << threads << " threads";
  }
}

TEST(SignalGuard, the_callers_mask_is_restored_exactly) {
  sigset_t odd, before;
  sigemptyset(&odd);
  sigaddset(&odd, SIGUSR2);
  sigaddset(&odd, SIGWINCH);
  pthread_sigmask(SIG_BLOCK, &odd, &before);
  const std::uint64_t mask = kernel_mask();
  const Product product(8);
  Tensor<float> c({8, 8});
  for (const int threads : {1, 3}) {
    const ThreadScope scope(threads);
    product.multiply_into(c);
    EXPECT_EQ(kernel_mask(), mask) << "after a product";
    errno = 42;
    parallel_tiles(12, [&](Index) {
      Tensor<float> own({8, 8});
      product.multiply_into(own);
    });
    EXPECT_EQ(errno, 42);
    EXPECT_EQ(kernel_mask(), mask) << "after a region";
    EXPECT_THROW(parallel_tiles(12,
                                [&](Index tile) {
                                  Tensor<float> own({8, 8});
                                  product.multiply_into(own);
                                  if (tile % 5 == 2) throw std::out_of_range("tile");
                                }),
                 std::out_of_range);
    EXPECT_EQ(kernel_mask(), mask) << "after an exception";
    std::atomic<int> blocking = 0;
    parallel_tiles(30, [&](Index) {
      if (blocks(kernel_mask(), SIGALRM)) ++blocking;
    });
    EXPECT_EQ(blocking, 0) << "the team's other threads have theirs again";
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

TEST(SignalGuard, a_product_blocks_all_but_the_threads_own_faults) {
  const ProductGuard guard({8, 8, 8});
  EXPECT_TRUE(inside_product());
  const std::uint64_t mask = kernel_mask();
  for (const int signal : {SIGHUP, SIGINT, SIGALRM, SIGTERM, SIGCHLD, SIGPROF, SIGUSR1, SIGVTALRM, 32, 33, 64}) {
    EXPECT_TRUE(blocks(mask, signal)) << signal;
  }
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS}) {
    EXPECT_FALSE(blocks(mask, signal)) << signal;
  }
}

TEST(SignalGuard, products_and_regions_nest) {
  const std::uint64_t mask = kernel_mask();
  {
    const ProductRegion outer;
    EXPECT_EQ(kernel_mask(), mask) << "a region without a product changes nothing";
    {
      const ProductRegion inner;
      const ProductGuard guard({1, 1, 1});
      const ProductGuard nested({1, 1, 1});
    }
    EXPECT_FALSE(inside_product());
    EXPECT_TRUE(blocks(kernel_mask(), SIGALRM)) << "until the outer region ends";
  }
  EXPECT_EQ(kernel_mask(), mask);
}

volatile std::sig_atomic_t seen = 0;

TEST(SignalGuard, a_pending_signal_is_delivered_between_the_products_of_a_long_region) {
  seen = 0;
  struct sigaction action = {}, before = {};
  action.sa_handler = [](int) { seen = 1; };
  sigaction(SIGUSR1, &action, &before);
  const ThreadScope one(1);
  const Product product(64);
  bool in_time = false;
  parallel_tiles(1, [&](Index) {
    Tensor<float> c({64, 64});
    product.multiply_into(c);
    pthread_kill(pthread_self(), SIGUSR1);
    EXPECT_EQ(seen, 0) << "it is blocked";
    for (int i = 0; i < 1'000'000 && seen == 0; ++i) product.multiply_into(c);
    in_time = seen != 0;
  });
  sigaction(SIGUSR1, &before, nullptr);
  EXPECT_TRUE(in_time);
}

// A child that hangs is ended by its alarm.
int exit_code_of_child(void (*body)()) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(60);
    body();
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

TEST(SignalGuard, a_forked_child_of_a_process_with_a_team_works_alone) {
  const ThreadScope scope(3);
  parallel_tiles(50, [](Index) {});  // starts the threads
  EXPECT_EQ(exit_code_of_child([] {
              const pid_t self = ::gettid();
              std::atomic<int> own = 0;
              parallel_tiles(50, [&](Index) { own += ::gettid() == self ? 1 : 0; });
              ::_exit(own == 50 && thread_count() == 1 ? 0 : 1);
            }),
            0);
}

// A host program that exits while another of its threads is training.
void exit_while_another_thread_multiplies() {
  const ThreadScope scope(2);
  static std::atomic<int> rounds = 0;
  std::thread([] {
    const ThreadScope own(2);
    for (;;) {
      parallel_tiles(8, [](Index) {
        const Product product(160);
        Tensor<float> c({160, 160});
        product.multiply_into(c);
      });
      ++rounds;
    }
  }).detach();
  while (rounds < 3) ::usleep(1000);
  std::exit(7);
}

// The handler of exit() is registered between two kinds of product, so it runs after the wait for the second kind: by
// then no thread is inside a product, and none enters one.
void exit_between_products_of_another_thread() {
  static std::atomic<bool> inside = false;
  static std::atomic<int> entered = 0;
  { const ProductGuard first_kind({1, 1, 1}); }
  std::atexit([] {
    if (inside) ::_exit(8);
    const int before = entered;
    ::usleep(50'000);
    if (entered != before) ::_exit(9);
  });
  { const ProductGuard second_kind({64, 64, 64}); }
  std::thread([] {
    for (;;) {
      const ProductGuard guard({1, 1, 1});
      inside = true;
      ++entered;
      ::usleep(20'000);
      inside = false;
    }
  }).detach();
  while (entered < 2) ::usleep(1000);
  std::exit(7);
}

TEST(SignalGuardDeathTest, exit_waits_for_products_and_parks_threads_that_begin_another) {
  ::testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(exit_between_products_of_another_thread(), ::testing::ExitedWithCode(7), "");
}

TEST(SignalGuardDeathTest, exit_during_products_of_another_thread_ends_the_process_in_order) {
  ::testing::FLAGS_gtest_death_test_style = "threadsafe";
  for (int i = 0; i < 4; ++i) {
    EXPECT_EXIT(exit_while_another_thread_multiplies(), ::testing::ExitedWithCode(7), "");
  }
}

}  // namespace
}  // namespace handgrad
