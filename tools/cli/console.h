#pragma once

#include <string_view>

namespace handgrad::cli {

/// Opens /dev/null for each of descriptors 0, 1 and 2 that is closed, so that no file of the program gets its number.
void open_standard_streams();

/// Writes to standard output and flushes. A failure is remembered and never thrown: training goes on without its
/// listener. Once the reader has gone, nothing more is written.
void say(std::string_view text);

/// Writes to standard error. Failures are ignored: no stream is left to report them on.
void say_error(std::string_view text);

/// Flushes standard output. Returns 0, or the errno of its first failure: EPIPE where its reader has gone.
int standard_output_error();

}  // namespace handgrad::cli
