#include "signals.h"

#include <csignal>

namespace handgrad::cli {
namespace {

volatile std::sig_atomic_t signal_received = 0;

void set(int signal, void (*handler)(int)) {
  struct sigaction action = {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  sigaction(signal, &action, nullptr);
}

// Serves once: the next signal, of either kind, finds the system's own handler, which ends the program.
void remember(int signal) {
  signal_received = signal;
  set(SIGINT, SIG_DFL);
  set(SIGTERM, SIG_DFL);
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
