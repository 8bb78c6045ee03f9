#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

// The rules of the source tree: include edges between folders, and constructs that are limited to certain files.

namespace handgrad {
namespace {

namespace fs = std::filesystem;

const fs::path root = HANDGRAD_SOURCE_DIR;

// The folders whose headers each folder includes: exactly these.
const std::map<std::string, std::set<std::string>> edges = {
    {"core", {}},
    {"files", {"core"}},
    {"config", {"core", "files"}},
    {"io", {"core", "files"}},
    {"text", {"core", "files"}},
    {"autograd", {"core"}},
    {"ops", {"autograd", "core"}},
    {"optim", {"autograd", "core"}},
    {"nn", {"autograd", "config", "core", "ops"}},
    {"observe", {"autograd", "core", "ops"}},
    {"checkpoint", {"config", "core", "files", "io", "nn", "optim", "text"}},
    {"generate", {"core", "files", "nn", "text"}},
    {"verify", {"autograd", "config", "core", "files", "nn", "ops"}},
    {"train", {"checkpoint", "config", "core", "files", "io", "nn", "observe", "optim", "text"}},
};

std::set<std::string> reachable(const std::string& folder) {
  std::set<std::string> all{folder};
  for (const std::string& next : edges.at(folder)) all.merge(reachable(next));
  return all;
}

struct Source {
  std::string path;    // from the root, with slashes
  std::string folder;  // "ops"; empty for a file at the top
  std::string text;
};

std::string read(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

std::vector<Source> sources(const std::vector<std::string>& tops) {
  std::vector<Source> found;
  for (const std::string& top : tops) {
    if (!fs::exists(root / top)) continue;
    for (const auto& entry : fs::recursive_directory_iterator(root / top)) {
      const std::string extension = entry.path().extension().string();
      if (!entry.is_regular_file() || (extension != ".h" && extension != ".cpp")) continue;
      const fs::path inside = fs::relative(entry.path(), root / top);
      found.push_back({fs::relative(entry.path(), root).generic_string(),
                       inside.has_parent_path() ? inside.begin()->string() : "", read(entry.path())});
    }
  }
  return found;
}

std::vector<Source> library() {
  auto found = sources({"include/handgrad", "src"});
  EXPECT_GT(found.size(), 50u) << "the library's sources were not found";
  return found;
}

// The includes of a file.
std::vector<std::string> includes(const std::string& text) {
  static const std::regex line(R"re((?:^|\n)[ \t]*#[ \t]*include[ \t]*["<]([^">]+)[">])re");
  std::vector<std::string> names;
  for (std::sregex_iterator i(text.begin(), text.end(), line), end; i != end; ++i) names.push_back((*i)[1]);
  return names;
}

// The text without comments and strings.
std::string code(const std::string& text) {
  static const std::regex aside(R"re(//[^\n]*|/\*[^]*?\*/|"(?:\\.|[^"\\\n])*")re");
  return std::regex_replace(text, aside, " ");
}

TEST(House, includes_are_the_listed_edges) {
  std::map<std::string, std::set<std::string>> found;
  for (const Source& source : library()) {
    ASSERT_TRUE(edges.contains(source.folder)) << source.path << " is in no folder of the house";
    found[source.folder];
    for (std::string name : includes(source.text)) {
      if (name.starts_with("handgrad/")) name = name.substr(9);
      const std::string target = name.substr(0, name.find('/'));
      if (name.find('/') == std::string::npos || !edges.contains(target) || target == source.folder) continue;
      EXPECT_TRUE(edges.at(source.folder).contains(target))
          << source.path << " includes " << name << ", but " << source.folder << " does not use " << target;
      found[source.folder].insert(target);
    }
  }
  EXPECT_EQ(found, edges) << "an edge that nothing uses is removed from the list";
}

TEST(House, the_edges_have_no_circle) {
  for (const auto& [folder, targets] : edges) {
    for (const std::string& target : targets) {
      ASSERT_TRUE(edges.contains(target));
      EXPECT_FALSE(reachable(target).contains(folder)) << folder << " and " << target;
    }
  }
}

TEST(House, public_headers_include_no_private_or_foreign_ones) {
  for (const Source& source : sources({"include/handgrad"})) {
    for (const std::string& name : includes(source.text)) {
      EXPECT_FALSE(std::regex_search(name, std::regex("^(Eigen|unsupported/|dnnl|oneapi|hdf5|H5|omp\\.h|fmt/|toml)")))
          << source.path << " includes " << name;
      if (name.find('/') != std::string::npos) {
        EXPECT_TRUE(name.starts_with("handgrad/") || name.starts_with("sys/")) << source.path << " includes " << name;
      }
    }
  }
}

TEST(House, openmp_is_in_one_place) {
  for (const Source& source : library()) {
    if (source.path == "src/core/parallel.cpp") continue;
    EXPECT_FALSE(std::regex_search(code(source.text), std::regex("#\\s*pragma\\s+omp|\\bomp_\\w+|_Pragma")))
        << source.path;
    for (const std::string& name : includes(source.text)) EXPECT_NE(name, "omp.h") << source.path;
  }
}

TEST(House, one_matrix_library_has_one_door) {
  for (const Source& source : library()) {
    if (source.path == "src/core/gemm.cpp") continue;
    for (const std::string& name : includes(source.text)) {
      EXPECT_FALSE(name.starts_with("dnnl")) << source.path << " includes " << name;
      EXPECT_FALSE(name.starts_with("Eigen") && source.path != "src/core/eigen.h") << source.path;
    }
  }
}

// Functions that conjugate or are not analytic give wrong complex steps.
TEST(House, operations_use_no_function_that_conjugates) {
  const std::regex forbidden(R"re(\b(adjoint|dot|norm|squaredNorm|abs|fabs|pow|conj)\s*(<[^>\n]*>)?\s*\()re");
  for (const Source& source : sources({"src/ops"})) {
    std::istringstream lines(code(source.text));
    for (std::string line; std::getline(lines, line);) {
      // A table of angles is made of real numbers.
      if (line.find("std::pow(theta_, -2.0") != std::string::npos) continue;
      EXPECT_FALSE(std::regex_search(line, forbidden)) << source.path << ": " << line;
    }
  }
}

TEST(House, build_files_ask_for_no_arithmetic_without_nan) {
  const std::regex flag("-(Ofast|ffast-math|ffinite-math-only|funsafe-math-optimizations|fassociative-math)");
  std::vector<fs::path> files{root / "CMakeLists.txt", root / "CMakePresets.json"};
  for (const char* top : {"tests", "tools", "src", ".ci"}) {
    if (!fs::exists(root / top)) continue;
    for (const auto& entry : fs::recursive_directory_iterator(root / top)) {
      const std::string name = entry.path().filename().string(), extension = entry.path().extension().string();
      if (name == "CMakeLists.txt" || extension == ".cmake" || extension == ".sh" || name == "run") {
        files.push_back(entry.path());
      }
    }
  }
  for (const fs::path& path : files) {
    std::istringstream lines(read(path));
    for (std::string line; std::getline(lines, line);) {
      if (line.find("MATCHES") != std::string::npos || line.find("refuses") != std::string::npos)
        continue;  // the guard
      EXPECT_FALSE(std::regex_search(line, flag)) << path << ": " << line;
    }
  }
  EXPECT_TRUE(std::regex_search(read(root / "CMakeLists.txt"), std::regex("MATCHES.*-ffast-math"))) << "no guard";
}

TEST(House, files_are_short_enough_to_read) {
  for (const Source& source : sources({"include", "src", "tests", "tools"})) {
    const auto lines = std::count(source.text.begin(), source.text.end(), '\n');
    EXPECT_LE(lines, 400) << source.path << " is asking to be split";
  }
}

TEST(House, an_operation_is_a_header_and_a_source) {
  // Headers of arguments of operations, and the list of all operations.
  const std::set<std::string> options{"attention_options", "dropout_mask",  "loss_options", "mask", "ops",
                                      "positions",         "row_statistics"};
  const std::string list = read(root / "include/handgrad/ops/ops.h");
  for (const Source& source : sources({"include/handgrad/ops"})) {
    const std::string name = fs::path(source.path).stem().string();
    if (options.contains(name)) continue;
    EXPECT_TRUE(fs::exists(root / "src/ops" / (name + ".cpp"))) << name << " has no source";
    EXPECT_NE(list.find("handgrad/ops/" + name + ".h\""), std::string::npos) << name << " is not in ops.h";
    for (const char* part : {"///   forward", "///   backward", "/// Shapes", "/// Saves"}) {
      EXPECT_NE(source.text.find(part), std::string::npos) << source.path << " lacks \"" << part << "\"";
    }
  }
  for (const auto& entry : fs::directory_iterator(root / "src/ops")) {
    if (entry.path().extension() != ".cpp" || options.contains(entry.path().stem().string())) continue;
    EXPECT_TRUE(fs::exists(root / "include/handgrad/ops" / entry.path().stem().concat(".h"))) << entry.path();
  }
}

TEST(House, the_library_neither_prints_nor_exits) {
  const std::regex forbidden(
      R"re(\bstd::(cout|cerr|clog|exit|abort|quick_exit|signal)\b|\b(printf|puts|fprintf)\s*\()re");
  for (const Source& source : library()) {
    EXPECT_FALSE(std::regex_search(code(source.text), forbidden)) << source.path;
  }
}

}  // namespace
}  // namespace handgrad
