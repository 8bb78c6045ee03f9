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

// The pages for developers name files, classes, functions, tests and config keys that exist.

namespace handgrad::test {
namespace {

namespace fs = std::filesystem;

const fs::path root = HANDGRAD_SOURCE_DIR;
const std::vector<std::string> developer_pages = {"docs/CONTRIBUTING.md", "docs/architecture.md"};

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
      if (!fs::exists(root / top)) continue;
      for (const auto& entry : fs::recursive_directory_iterator(root / top)) add(entry.path());
    }
  }

  // A path from the root, from include/handgrad or from docs. NAME and * stand for a part of a name.
  bool has_path(const std::string& path) const {
    return has_whole_path(path) || has_whole_path("include/handgrad/" + path) || has_whole_path("docs/" + path);
  }
  bool has_file_named(const std::string& name) const { return file_names_.contains(name); }
  bool has_word(const std::string& word) const { return words_.contains(word); }
  bool has_test(const std::string& suite, const std::string& name) const {
    const auto found = tests_.find(suite);
    return found != tests_.end() && (name == "*" || found->second.contains(name));
  }
  // Is a::b written in the code, or does a file that declares a have the word b?
  bool has_member(const std::string& a, const std::string& b) const {
    const std::regex declaration("\\b(class|struct|namespace)\\s+(\\w+::)*" + a + "\\b");
    for (std::size_t i = 0; i < codes_.size(); ++i) {
      if (codes_[i].find(a + "::" + b) != std::string::npos) return true;
      if (words_of_file_[i].contains(a) && words_of_file_[i].contains(b) && std::regex_search(codes_[i], declaration)) {
        return true;
      }
    }
    return false;
  }
  bool has_text(const std::string& text) const {
    return std::any_of(codes_.begin(), codes_.end(), [&](const auto& code) { return code.find(text) != code.npos; });
  }

 private:
  bool has_whole_path(std::string path) const {
    if (path.ends_with('/')) path.pop_back();
    if (path.find('*') == path.npos && path.find("NAME") == path.npos) return paths_.contains(path);
    path = std::regex_replace(path, std::regex("\\."), "\\.");
    const std::regex pattern(std::regex_replace(path, std::regex(R"(\*|NAME)"), "[^/]+"));
    return std::any_of(paths_.begin(), paths_.end(), [&](const auto& p) { return std::regex_match(p, pattern); });
  }
  void add(const fs::path& path) {
    paths_.insert(fs::relative(path, root).generic_string());
    file_names_.insert(path.filename().string());
    static const std::set<std::string> sources{".h", ".cpp", ".py", ".sh", ".toml", ".txt", ".json", ".in"};
    const std::string extension = path.extension().string();
    const std::string folder = fs::relative(path, root).begin()->string();
    if (!fs::is_regular_file(path) || !sources.contains(extension) || folder == "data" || folder == "docs") return;
    if (path.filename() == "architecture_test.cpp") return;  // contains wrong names
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
  if (name.find("NAME") != name.npos) return true;
  const auto parts = matches(name.substr(0, name.find('(')), std::regex(R"(\w+)"));
  if (parts.size() == 1) return tree().has_word(parts[0]);
  for (std::size_t i = 1; i < parts.size(); ++i) {
    if (!tree().has_member(parts[i - 1], parts[i])) return false;
  }
  return true;
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

using Names = std::set<std::string>;

// The inline code of a page that names what does not exist.
Names wrong_inline_code(const std::string& page) {
  static const std::regex inline_code("`([^`\n]+)`");
  Names wrong;
  bool fenced = false;
  std::istringstream lines(page);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("```")) fenced = !fenced;
    if (fenced) continue;
    for (const auto& span : matches(line, inline_code)) {
      if (!span_exists(span)) wrong.insert(span);
    }
  }
  return wrong;
}

// Anywhere in a page, pictures and commands included: paths into the folders of the repository, and names of code, which
// are identifiers with an underscore, a capital inside, or "::". NAME stands for a name to choose.
Names wrong_words(const std::string& page) {
  const std::string text = std::regex_replace(page, std::regex(R"(NAME_\w+|\w+_NAME|`[\w.*]+\.\w+`)"), " ");
  static const std::regex path(
      R"((?:^|[^\w./])((?:include|src|tests|tools|docs|configs|core|files|config|text|io|autograd|ops|optim|nn|observe|)"
      R"(checkpoint|generate|verify|train|\.github|\.ci)/[\w./-]*\w))");
  static const std::regex name(R"([A-Za-z]\w*(?:_\w+)+|[A-Z][a-z]+[A-Z]\w*|\w+(?:::\w+)+)");
  Names wrong;
  for (const auto& found : matches(text, path)) {
    if (!tree().has_path(found)) wrong.insert(found);
  }
  const std::string rest = std::regex_replace(text, std::regex(R"([\w.-]+/[\w./*-]*|-D\w+)"), " ");
  for (const auto& found : matches(rest, name)) {
    if (!identifier_exists(found)) wrong.insert(found);
  }
  return wrong;
}

Names wrong_names(const std::string& page) {
  Names wrong = wrong_inline_code(page);
  wrong.merge(wrong_words(page));
  return wrong;
}

TEST(Pages, for_developers_name_what_exists) {
  for (const std::string& page : developer_pages) {
    const std::string text = text_of((root / page).string());
    ASSERT_GT(text.size(), 1000u) << page;
    for (const std::string& name : wrong_names(text)) ADD_FAILURE() << page << ": there is no " << name;
  }
}

TEST(Pages, the_search_for_wrong_names_finds_them) {
  EXPECT_EQ(wrong_names("`src/ops/rope.cpp`, `rope_backward()`, `Tape::backward`, `House.openmp_is_in_one_place`, "
                        "`House.*`, `model.n_heads`, `latest.h5`, `src/ops/NAME.cpp`, `files::write_durably`\n"
                        "```text\ntrain/update.h  CausalLm -> rope_forward(x)\n```\n"),
            Names{});
  for (const std::string name :
       {"src/ops/none.cpp", "none.cpp", "nofunction()", "Tape::nomember", "Run::store", "House.no_such_test",
        "NoSuchSuite.*", "model.no_such_key", "no_such_name.h5", "none/NAME.cpp", "cat src/ops/none.cpp"}) {
    EXPECT_TRUE(wrong_inline_code("a `" + name + "` b").contains(name)) << name;
  }
  EXPECT_EQ(wrong_names("write_durable, src/files/durable.cpp and TokenWindow, files::write_nothing\n"
                        "```text\ntrain/none.h  NoSuchClass -> no_such_function(x)\n```\n"),
            (Names{"NoSuchClass", "TokenWindow", "files::write_nothing", "no_such_function", "src/files/durable.cpp",
                   "train/none.h", "write_durable"}));
}

// "| `ops` | what it holds | core, autograd |" beside the list that the house test enforces.
std::map<std::string, Names> rows_of(const std::string& text, const char* row) {
  std::map<std::string, Names> rows;
  const std::regex pattern(row), word("\\w+");
  for (std::sregex_iterator i(text.begin(), text.end(), pattern), end; i != end; ++i) {
    const auto words = matches((*i)[2], word);
    rows[(*i)[1]] = {words.begin(), words.end()};
  }
  return rows;
}

TEST(Pages, the_rooms_have_the_edges_of_the_house) {
  const std::string page = text_of((root / "docs/architecture.md").string());
  const auto enforced = rows_of(text_of((root / "tests/house_test.cpp").string()), R"re(\{"(\w+)", \{([^}]*)\}\},)re");
  EXPECT_GT(enforced.size(), 10u);
  EXPECT_EQ(rows_of(page, R"(\n\| `(\w+)` \| [^|]* \| ([^|]*) \|)"), enforced);

  // The picture: lines of a number and the folders of that level.
  std::map<std::string, std::string> level;
  for (const auto& [number, folders] : rows_of(page, R"(\n +(\d) ((?: +\w+)+))")) {
    for (const std::string& folder : folders) level[folder] = number;
  }
  for (const auto& [folder, targets] : enforced) {
    EXPECT_TRUE(level.contains(folder)) << folder << " is not in the picture";
    for (const std::string& target : targets) EXPECT_GT(level[folder], level[target]) << folder << " and " << target;
  }
}

}  // namespace
}  // namespace handgrad::test
