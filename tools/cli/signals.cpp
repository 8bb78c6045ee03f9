#include "signals.h"

#include <fmt/format.h>
#include <poll.h>
#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <string>
#include <system_error>
#include <thread>

#include "terminal.h"

namespace handgrad::cli {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto deliberate = std::chrono::milliseconds(500);

// Written by the waiting thread and by StopRequest, read by the thread that trains.
struct State {
  std::atomic<bool> in_order = false;  // a StopRequest exists
  std::atomic<bool> acknowledges = false;
  std::atomic<int> received = 0;
  std::atomic<Index> saved_step = -1;
  std::stop_source stop;
};

// Never destroyed: the waiting thread uses it until the process has ended.
State& state() {
  static State& one = *new State;
  return one;
}

[[noreturn]] void end_at_once(int signal) {
  std::signal(signal, SIG_DFL);
  sigset_t one;
  sigemptyset(&one);
  sigaddset(&one, signal);
  pthread_sigmask(SIG_UNBLOCK, &one, nullptr);
  ::raise(signal);
  ::_exit(128 + signal);  // process 1 of a container has no default actions
}

// Does not block if the reader of standard error has stopped reading.
void write_without_waiting(const std::string& text) {
  pollfd end = {STDERR_FILENO, POLLOUT, 0};
  if (::poll(&end, 1, 0) != 1 || (end.revents & POLLOUT) == 0) return;
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, text.data(), text.size());
}

void acknowledge() {
  const Index saved = state().saved_step;
  const std::string loss =
      saved > 0 ? fmt::format("steps after {} would be lost", saved) : std::string("all steps would be lost");
  write_without_waiting(
      fmt::format("{}stopping, then saving (a second Ctrl-C ends at once: {})\n", erase_line(STDERR_FILENO), loss));
}

void wait_for_signals(sigset_t watched) {
  bool stop_requested = false;  // by SIGINT or SIGTERM
  Clock::time_point acknowledged;
  for (;;) {
    int signal = 0;
    if (::sigwait(&watched, &signal) != 0) continue;
    if (!state().in_order) end_at_once(signal);
    const bool person = signal == SIGINT || signal == SIGTERM;
    if (person && stop_requested) {
      if (Clock::now() - acknowledged >= deliberate) end_at_once(signal);
      continue;
    }
    const bool first = state().received == 0;
    if (first) state().received = signal;
    state().stop.request_stop();
    if (state().acknowledges && (first || person)) acknowledge();
    acknowledged = Clock::now();
    stop_requested = stop_requested || person;
  }
}

}  // namespace

void watch_signals() {
  sigset_t watched, all, before;
  sigemptyset(&watched);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGUSR1}) {
    struct sigaction action = {};
    sigaction(signal, nullptr, &action);
    if (action.sa_handler != SIG_IGN) sigaddset(&watched, signal);
  }
  state();
  // The waiting thread receives no other signals. Threads created later inherit the mask of this thread.
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, &before);
  bool waiting = true;
  try {
    std::thread(wait_for_signals, watched).detach();
  } catch (const std::system_error&) {
    waiting = false;  // no thread could be created: signals keep their default actions
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (waiting) pthread_sigmask(SIG_BLOCK, &watched, nullptr);
}

StopRequest::StopRequest(Acknowledge acknowledge) {
  state().acknowledges = acknowledge == Acknowledge::on_standard_error;
  state().in_order = true;
}

StopRequest::~StopRequest() { state().in_order = false; }

std::stop_token StopRequest::token() { return state().stop.get_token(); }

int StopRequest::received() { return state().received; }

void StopRequest::note_saved(Index step) { state().saved_step = step; }

}  // namespace handgrad::cli
