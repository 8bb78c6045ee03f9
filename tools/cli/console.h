#pragma once

#include <string_view>

namespace handgrad::cli {

/// Opens /dev/null for each closed descriptor among 0, 1 and 2, so that no other file of the program gets its number.
void open_standard_streams();

/// Writes to standard output and flushes it. A failure is recorded, not thrown: training continues without a reader.
/// Once the reader has closed the pipe, nothing more is written.
void say(std::string_view text);

/// Writes to standard error. Failures are ignored, since there is no other stream to report them.
void say_error(std::string_view text);

/// Flushes standard output. Returns 0, or the errno of the first failure; EPIPE if the reader has closed the pipe.
int standard_output_error();

}  // namespace handgrad::cli
