#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "handgrad/config/fields.h"
#include "support/operations.h"

// The guides for contributors name files, functions, tests and config keys. Each of them must exist in the tree.

namespace handgrad::test {
namespace {

namespace fs = std::filesystem;

const fs::path root = HANDGRAD_SOURCE_DIR;
const std::vector<std::string> guides = {"docs/CONTRIBUTING.md", "docs/architecture.md"};

std::vector<std::string> matches(const std::string& text, const std::regex& pattern) {
  std::vector<std::string> found;
  for (std::sregex_iterator i(text.begin(), text.end(), pattern), end; i != end; ++i) {
    found.push_back((*i)[i->size() - 1]);
  }
  return found;
}

bool matches_all(const std::string& text, const char* pattern) { return std::regex_match(text, std::regex(pattern)); }

// C++ without comments. A name that only a comment contains does not exist.
std::string without_comments(const std::string& text) {
  static const std::regex comment_or_string(R"re(//[^\n]*|("(?:\\.|[^"\\\n])*"))re");
  return std::regex_replace(text, comment_or_string, "$1");
}

// The files of the repository and the names in their code.
class Tree {
 public:
  Tree() {
    for (const auto& entry : fs::directory_iterator(root)) {
      if (entry.is_regular_file()) add(entry.path());
    }
    for (const char* top : {".ci", ".github", "configs", "data", "docs", "include", "src", "tests", "tools"}) {
      for (const auto& entry : fs::recursive_directory_iterator(root / top)) add(entry.path());
    }
  }

  bool has_path(std::string path) const {
    if (path.ends_with('/')) path.pop_back();
    if (!matches_all(path, R"(.*(\*|[A-Z]{4}).*)")) return paths_.contains(path);
    // NAME and * stand for a part of a name: one file must fit.
    path = std::regex_replace(path, std::regex(R"([.+])"), "\\$&");
    const std::regex pattern(std::regex_replace(path, std::regex(R"(\*|NAME)"), "[^/]+"));
    return std::any_of(paths_.begin(), paths_.end(), [&](const auto& p) { return std::regex_match(p, pattern); });
  }
  bool has_file_named(const std::string& name) const { return file_names_.contains(name); }
  bool has_word(const std::string& word) const { return words_.contains(word); }
  bool has_test(const std::string& suite, const std::string& name) const {
    const auto found = tests_.find(suite);
    return found != tests_.end() && (name == "*" || found->second.contains(name));
  }
  // Do the parts of a::b occur in one file?
  bool has_member(const std::vector<std::string>& parts) const {
    return std::any_of(words_of_file_.begin(), words_of_file_.end(), [&](const auto& words) {
      return std::all_of(parts.begin(), parts.end(), [&](const auto& part) { return words.contains(part); });
    });
  }
  bool has_text(const std::string& text) const {
    return std::any_of(codes_.begin(), codes_.end(), [&](const auto& code) { return code.find(text) != code.npos; });
  }

 private:
  void add(const fs::path& path) {
    paths_.insert(fs::relative(path, root).generic_string());
    file_names_.insert(path.filename().string());
    static const std::set<std::string> sources{".h", ".cpp", ".py", ".sh", ".toml", ".txt", ".json", ".in"};
    const std::string extension = path.extension().string();
    const std::string folder = fs::relative(path, root).begin()->string();
    if (!fs::is_regular_file(path) || !sources.contains(extension) || folder == "data" || folder == "docs") return;
    if (path.filename() == "guides_test.cpp") return;  // contains wrong names
    std::string code = text_of(path.string());
    if (extension == ".h" || extension == ".cpp") code = without_comments(code);
    const auto found = matches(code, std::regex(R"(\w+)"));
    words_.insert(found.begin(), found.end());
    words_of_file_.emplace_back(found.begin(), found.end());
    for (std::sregex_iterator i(code.begin(), code.end(), test_), end; i != end; ++i) tests_[(*i)[1]].insert((*i)[2]);
    codes_.push_back(std::move(code));
  }

  const std::regex test_{R"(\bT(?:YPED_T)?EST(?:_F|_P)?\((\w+),\s*(\w+)\))"};
  std::set<std::string> paths_, file_names_, words_;
  std::vector<std::set<std::string>> words_of_file_;
  std::vector<std::string> codes_;
  std::map<std::string, std::set<std::string>> tests_;  // names by suite
};

const Tree& tree() {
  static const Tree tree;
  return tree;
}

bool is_path(const std::string& word) {
  return matches_all(word, R"([A-Za-z0-9_.][A-Za-z0-9_.*-]*/[A-Za-z0-9_./*-]*)") && !word.starts_with("build/");
}

// a.b: a file, a test, a config key, or a name in a string, such as that of a file in a run folder.
bool dotted_name_exists(const std::string& name) {
  const auto dot = name.find('.');
  const std::string before = name.substr(0, dot), after = name.substr(dot + 1);
  return tree().has_file_named(name) || tree().has_test(before, after) || config::find_field(name) != nullptr ||
         tree().has_text("\"" + name + "\"") || tree().has_text("/" + name + "\"");
}

// a, a::b or a::b(c)
bool identifier_exists(const std::string& name) {
  const auto parts = matches(name.substr(0, name.find('(')), std::regex(R"(\w+)"));
  return parts.size() == 1 ? tree().has_word(parts[0]) : tree().has_member(parts);
}

// One inline code span. Of a command, only the paths are checked; what is no name is not checked.
bool span_exists(const std::string& span) {
  if (span.find(' ') != std::string::npos && !matches_all(span, R"([\w:]+\(.*\))")) {
    std::istringstream words(span);
    for (std::string word; words >> word;) {
      if (is_path(word) && !tree().has_path(word)) return false;
    }
    return true;
  }
  if (is_path(span)) return tree().has_path(span);
  if (matches_all(span, R"(\.?\w[\w-]*\.[\w*]+)")) return dotted_name_exists(span);
  if (matches_all(span, R"([A-Za-z_]\w*(::\w+)*(\(.*\))?)")) return identifier_exists(span);
  return true;
}

// The names in a text that do not exist: inline code, and in diagrams (blocks of ```text) paths, functions and classes.
std::vector<std::string> unknown_names(const std::string& text, int* checked = nullptr) {
  static const std::regex inline_code("`([^`\n]+)`"), path(R"((?:[\w.-]+/)+[\w.-]+\.(?:h|cpp|toml))"),
      function(R"([A-Za-z_]\w*(?:::\w+)*(?=\()|\w+(?:::\w+)+)"), type(R"(\b[A-Z][a-z]+[A-Z]\w*)");
  std::vector<std::string> unknown;
  const auto check = [&](const std::string& name, bool exists) {
    if (checked) ++*checked;
    if (!exists) unknown.push_back(name);
  };
  std::string fence;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("```")) {
      fence = fence.empty() ? line : "";
    } else if (fence.empty()) {
      for (const auto& span : matches(line, inline_code)) check(span, span_exists(span));
    } else if (fence == "```text") {
      for (const auto& name : matches(line, path)) check(name, tree().has_path(name));
      for (const auto& name : matches(line, function)) check(name, identifier_exists(name));
      for (const auto& name : matches(line, type)) check(name, identifier_exists(name));
    }
  }
  return unknown;
}

using Names = std::vector<std::string>;

TEST(Guides, every_name_exists) {
  for (const std::string& guide : guides) {
    int checked = 0;
    EXPECT_EQ(unknown_names(text_of((root / guide).string()), &checked), Names{}) << guide;
    EXPECT_GT(checked, 80) << guide;
  }
}

TEST(Guides, a_wrong_name_is_noticed) {
  EXPECT_EQ(unknown_names("`src/ops/rope.cpp`, `rope_backward()`, `Tape::backward`, `House.openmp_is_in_one_place`, "
                          "`House.*`, `model.n_heads`, `latest.h5`, `src/ops/NAME.cpp`, `cat src/ops/rope.cpp`"),
            Names{});
  for (const std::string name :
       {"src/ops/none.cpp", "none.cpp", "no_such_function()", "Tape::no_such_member", "House.no_such_test",
        "NoSuchSuite.*", "model.no_such_key", "none.h5", "none/NAME.cpp", "cat src/ops/none.cpp"}) {
    EXPECT_EQ(unknown_names("a `" + name + "` b"), Names{name});
  }
  EXPECT_EQ(unknown_names("```text\nsrc/none.cpp  NoSuchClass -> no_such_function()\n```\n"),
            (Names{"src/none.cpp", "no_such_function", "NoSuchClass"}));
  EXPECT_EQ(unknown_names("```sh\nno_such_function()\n```\n"), Names{});
}

// "| `ops` | what it holds | core, autograd |" beside the list that the house test enforces.
TEST(Guides, architecture_lists_the_edges_of_the_house) {
  const auto words = [](const std::string& text) {
    const auto found = matches(text, std::regex(R"(\w+)"));
    return std::set<std::string>(found.begin(), found.end());
  };
  std::map<std::string, std::set<std::string>> enforced, documented;
  const std::string house = text_of((root / "tests/house_test.cpp").string());
  static const std::regex edge(R"re(\{"(\w+)", \{([^}]*)\}\},)re"), row(R"(\n\| `(\w+)` \| [^|]* \| ([^|]*) \|)");
  for (std::sregex_iterator i(house.begin(), house.end(), edge), end; i != end; ++i) {
    enforced[(*i)[1]] = words((*i)[2]);
  }
  const std::string page = text_of((root / "docs/architecture.md").string());
  for (std::sregex_iterator i(page.begin(), page.end(), row), end; i != end; ++i) documented[(*i)[1]] = words((*i)[2]);
  EXPECT_GT(enforced.size(), 10u);
  EXPECT_EQ(documented, enforced);
}

}  // namespace
}  // namespace handgrad::test
