#include <gtest/gtest.h>

#include <filesystem>
#include <regex>
#include <set>
#include <string>

#include "support/operations.h"

// The pages for developers name files, classes and functions that exist.

namespace handgrad::test {
namespace {

namespace fs = std::filesystem;

const fs::path root = HANDGRAD_SOURCE_DIR;

// All names that occur in the sources.
std::set<std::string> source_names() {
  std::set<std::string> names;
  const std::regex identifier("[A-Za-z_]\\w*");
  for (const char* top : {"include", "src", "tests", "tools"}) {
    for (const auto& entry : fs::recursive_directory_iterator(root / top)) {
      const std::string extension = entry.path().extension().string();
      if (extension != ".h" && extension != ".cpp" && extension != ".py") continue;
      if (entry.path().filename() == "architecture_test.cpp") continue;
      const std::string text = text_of(entry.path().string());
      for (std::sregex_iterator i(text.begin(), text.end(), identifier), end; i != end; ++i) names.insert(i->str());
    }
  }
  return names;
}

bool exists(const std::string& path) {
  return fs::exists(root / path) || fs::exists(root / "include/handgrad" / path) || fs::exists(root / "docs" / path);
}

// Problems of a page: paths that do not exist, and names of code that occur in no source. A path is what has a slash and
// no blank; a name is an identifier with an underscore, a capital inside, or "::". NAME stands for a name to choose.
std::set<std::string> wrong_names(const std::string& page, const std::set<std::string>& known) {
  std::set<std::string> wrong;
  const std::string text = std::regex_replace(page, std::regex("NAME_?\\w*|\\w+_NAME"), " ");
  const std::regex path(
      "(include|src|tests|tools|docs|configs|core|files|config|text|io|autograd|ops|optim|nn|observe|"
      "checkpoint|generate|verify|train|\\.github|\\.ci)/[\\w./-]*\\w");
  for (std::sregex_iterator i(text.begin(), text.end(), path), end; i != end; ++i) {
    const bool inside = i->position() > 0 && (std::isalnum(text[i->position() - 1]) || text[i->position() - 1] == '/');
    if (!inside && !exists(i->str())) wrong.insert(i->str());
  }
  const std::string rest = std::regex_replace(text, std::regex("[\\w.-]+/[\\w./-]*|-D\\w+"), " ");
  const std::regex name("[A-Za-z]\\w*(_\\w+)+|[A-Z][a-z]+[A-Z]\\w*|\\w+(::\\w+)+");
  for (std::sregex_iterator i(rest.begin(), rest.end(), name), end; i != end; ++i) {
    const std::string found = i->str();
    for (std::size_t begin = 0; begin <= found.size();) {
      const std::size_t end_of_part = std::min(found.find("::", begin), found.size());
      const std::string part = found.substr(begin, end_of_part - begin);
      if (!known.contains(part)) wrong.insert(found);
      begin = end_of_part + 2;
    }
  }
  return wrong;
}

TEST(Pages, for_developers_name_what_exists) {
  const std::set<std::string> known = source_names();
  for (const char* page : {"docs/architecture.md", "docs/CONTRIBUTING.md"}) {
    const std::string text = text_of((root / page).string());
    ASSERT_GT(text.size(), 1000u) << page;
    for (const std::string& name : wrong_names(text, known)) ADD_FAILURE() << page << ": there is no " << name;
  }
}

TEST(Pages, the_search_for_wrong_names_finds_them) {
  const std::set<std::string> known{"write_durably", "files", "TokenWindows"};
  EXPECT_EQ(wrong_names("`files::write_durably` in `src/files/durable_write.cpp`, `TokenWindows`", known),
            (std::set<std::string>{}));
  EXPECT_EQ(wrong_names("write_durable, src/files/durable.cpp and TokenWindow, files::write_all", known),
            (std::set<std::string>{"TokenWindow", "files::write_all", "src/files/durable.cpp", "write_durable"}));
}

}  // namespace
}  // namespace handgrad::test
