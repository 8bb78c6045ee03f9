#pragma once

#include <stop_token>

#include "handgrad/core/types.h"

namespace handgrad::cli {

/// Blocks SIGINT, SIGTERM, SIGHUP and SIGUSR1 in the whole process and starts a thread that waits for them. So no
/// signal handler runs on a computing thread, and signals also reach process 1 of a container. Signals that were
/// ignored when the program started remain ignored. Without a StopRequest a signal ends the program at once. Call once,
/// before any other thread exists.
void watch_signals();

/// During its lifetime, the first signal requests an orderly stop. A second SIGINT or SIGTERM ends the program at once,
/// but only if it arrives at least half a second after the first was acknowledged: `timeout` signals the child and then
/// its group within microseconds. SIGHUP and SIGUSR1 do not count as a first signal, since batch systems often send
/// SIGTERM after them.
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
  /// Records the step of the last checkpoint, which remains after a second signal; -1: none.
  static void note_saved(Index step);
};

}  // namespace handgrad::cli
