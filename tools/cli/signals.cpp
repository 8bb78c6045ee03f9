#include "signals.h"

#include <csignal>

namespace handgrad::cli {
namespace {

volatile std::sig_atomic_t signal_received = 0;

void remember(int signal) { signal_received = signal; }

void set(int signal, void (*handler)(int)) {
  struct sigaction action = {};
  action.sa_handler = handler;
  // The handler serves once: the next signal finds the system's own, which ends the program.
  action.sa_flags = SA_RESTART | static_cast<int>(SA_RESETHAND);
  sigaction(signal, &action, nullptr);
}

}  // namespace

StopSignals::StopSignals() {
  set(SIGINT, remember);
  set(SIGTERM, remember);
}

StopSignals::~StopSignals() {
  set(SIGINT, SIG_DFL);
  set(SIGTERM, SIG_DFL);
}

int StopSignals::received() { return signal_received; }

}  // namespace handgrad::cli
