#pragma once

#include <pthread.h>
#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

#include "core/signal_guard.h"

namespace handgrad::test {

/// During its lifetime, sends signals to the process and to the thread that created it. The handlers are plain: they
/// have no stack of their own, as those of profilers and timers in a host program.
class SignalStorm {
 public:
  explicit SignalStorm(const std::vector<int>& signals) : target_(pthread_self()) {
    total() = inside() = 0;
    for (const int signal : signals) {
      struct sigaction action = {};
      action.sa_handler = handle;
      action.sa_flags = SA_RESTART;
      before_.push_back({signal, {}});
      sigaction(signal, &action, &before_.back().action);
    }
    sender_ = std::thread([this, signals] {
      sigset_t all;  // the sending thread blocks all signals
      sigfillset(&all);
      pthread_sigmask(SIG_BLOCK, &all, nullptr);
      for (std::size_t i = 0; !stop_; ++i) {
        const int signal = signals[i % signals.size()];
        i % 2 == 0 ? ::kill(::getpid(), signal) : pthread_kill(target_, signal);
        ::usleep(50);
      }
    });
  }
  ~SignalStorm() {
    stop_ = true;
    sender_.join();
    for (const Before& before : before_) sigaction(before.signal, &before.action, nullptr);
  }
  SignalStorm(const SignalStorm&) = delete;
  SignalStorm& operator=(const SignalStorm&) = delete;

  int delivered() const { return total(); }
  int delivered_inside_products() const { return inside(); }

 private:
  struct Before {
    int signal;
    struct sigaction action;
  };

  static std::atomic<int>& total() {
    static std::atomic<int> count;
    return count;
  }
  static std::atomic<int>& inside() {
    static std::atomic<int> count;
    return count;
  }

  // Uses much of the stack below it, as a handler that formats text or takes samples.
  static void handle(int) {
    volatile char frame[2048];
    std::memset(const_cast<char*>(frame), 0x5a, sizeof frame);
    ++total();
    if (inside_product()) ++inside();
  }

  pthread_t target_;
  std::vector<Before> before_;
  std::atomic<bool> stop_ = false;
  std::thread sender_;
};

}  // namespace handgrad::test
