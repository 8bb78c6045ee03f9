#pragma once

#include <stop_token>

#include "handgrad/core/types.h"

namespace handgrad::cli {

/// Blocks SIGINT, SIGTERM, SIGHUP and SIGUSR1 in the whole process and starts a thread that waits for them. No handler
/// ever runs on a thread that computes, and signals arrive as process 1 of a container, too. Signals that were ignored
/// when the program started stay ignored. Without a StopRequest a signal ends the program at once. Call once, before
/// any other thread exists.
void watch_signals();

/// While it lives, the first signal asks the program to stop in order. A second SIGINT or SIGTERM ends it at once, but
/// only half a second after the first was acknowledged: `timeout` signals the child and then its group, within
/// microseconds. SIGHUP and SIGUSR1 are sent by machines, often with SIGTERM to follow, and do not count as a first.
class StopRequest {
 public:
  enum class Acknowledge { silently, on_standard_error };
  explicit StopRequest(Acknowledge acknowledge);
  ~StopRequest();
  StopRequest(const StopRequest&) = delete;
  StopRequest& operator=(const StopRequest&) = delete;

  static std::stop_token token();
  /// The first signal, or 0.
  static int received();
  /// The step of the last checkpoint: what a second signal would fall back to. -1: there is none.
  static void note_saved(Index step);
};

}  // namespace handgrad::cli
