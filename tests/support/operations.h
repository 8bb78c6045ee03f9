#pragma once

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace handgrad::test {

/// The whole of a file, as bytes; empty if it cannot be read.
inline std::string text_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

/// The names of all operations, from the includes of include/handgrad/ops/ops.h.
inline std::vector<std::string> operation_names() {
  std::vector<std::string> names;
  std::istringstream lines(text_of(HANDGRAD_SOURCE_DIR "/include/handgrad/ops/ops.h"));
  const std::string before = "#include \"handgrad/ops/", after = ".h\"";
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(before))
      names.push_back(line.substr(before.size(), line.size() - before.size() - after.size()));
  }
  return names;
}

}  // namespace handgrad::test
