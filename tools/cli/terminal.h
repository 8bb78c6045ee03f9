#pragma once

namespace handgrad::cli {

/// What clears the terminal's current line; empty where nothing can be drawn over.
const char* erase_line(int descriptor);

}  // namespace handgrad::cli
