#pragma once

namespace handgrad::cli {

/// While it lives, SIGINT and SIGTERM only set a flag, once: a second signal ends the program at once.
class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  /// The signal that has come, or 0.
  static int received();
};

}  // namespace handgrad::cli
