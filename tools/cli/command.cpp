#include "command.h"

#include "console.h"

namespace handgrad::cli {

Index size_of_texts(const std::vector<std::string>& paths) {
  try {
    return paths.empty() ? 0 : corpus_size_bytes(paths);
  } catch (const Error&) {
    return 0;
  }
}

void note(const std::string& text) { say_error(text + "\n"); }

void note_passed_over(const std::vector<std::string>& passed_over) {
  for (const std::string& reason : passed_over) note("note: passed over " + reason);
}

}  // namespace handgrad::cli
