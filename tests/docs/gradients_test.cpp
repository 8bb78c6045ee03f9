#include <gtest/gtest.h>

#include <cctype>
#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>

#include "docs/examples.h"
#include "handgrad/core/parallel.h"
#include "support/operations.h"

// The pages of docs/: worked examples are run, links have a target, every operation has a page.

namespace handgrad::test {
namespace {

namespace fs = std::filesystem;

const fs::path root = HANDGRAD_SOURCE_DIR;
const fs::path folder = root / "docs/gradients";

std::string read(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

std::vector<fs::path> pages(const fs::path& below) {
  std::vector<fs::path> found;
  for (const auto& entry : fs::recursive_directory_iterator(below)) {
    if (entry.path().extension() == ".md") found.push_back(entry.path());
  }
  std::sort(found.begin(), found.end());
  return found;
}

// A page without its fenced blocks, and the blocks.
struct Page {
  std::string prose;
  std::vector<Example> examples;
};

Page parse(const fs::path& path) {
  Page page;
  std::istringstream lines(read(path));
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("```")) {
      page.prose += line + '\n';
      continue;
    }
    std::string text;
    const std::string fence = line;
    while (std::getline(lines, line) && line != "```") text += line + '\n';
    EXPECT_EQ(line, "```") << path << ": a block is not closed: " << fence;
    if (!fence.starts_with("```example ")) continue;
    page.examples.emplace_back(fence.substr(11), path.filename().string(), text);
  }
  return page;
}

struct Link {
  std::string target, anchor;  // "softmax.md", "backward" or nothing
};

// A page's links to files.
std::vector<Link> links(const std::string& prose) {
  static const std::regex link(R"re(\]\(([^)#\s]+)(?:#([^)]*))?\))re");
  std::vector<Link> found;
  for (std::sregex_iterator i(prose.begin(), prose.end(), link), end; i != end; ++i) {
    if ((*i)[1].str().find("://") == std::string::npos) found.push_back({(*i)[1], (*i)[2]});
  }
  return found;
}

// The anchor that a code host makes of a heading: lower case, blanks to hyphens, no punctuation.
std::set<std::string> anchors(const std::string& prose) {
  std::set<std::string> found;
  std::istringstream lines(prose);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with('#')) continue;
    std::string anchor;
    for (const char c : line.substr(line.find(' ') + 1)) {
      if (c == ' ') anchor += '-';
      if (std::isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_') {
        anchor += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
      }
    }
    found.insert(anchor);
  }
  return found;
}

TEST(Pages, examples_print_what_the_operations_compute) {
  const ThreadScope one(1);  // tiny arrays: a second thread only costs time
  std::set<std::string> shown;
  for (const fs::path& path : pages(folder)) {
    Page page = parse(path);
    EXPECT_FALSE(page.examples.empty()) << path.filename() << " has no example";
    for (Example& example : page.examples) {
      shown.insert(example.name());
      const auto runner = example_runners().find(example.name());
      if (runner == example_runners().end()) {
        ADD_FAILURE() << example.place() << ": nothing runs it";
        continue;
      }
      try {
        runner->second(example);
      } catch (const std::exception& error) {
        ADD_FAILURE() << example.place() << ": " << error.what();
      }
      example.finish();
    }
  }
  for (const auto& [name, runner] : example_runners()) EXPECT_TRUE(shown.contains(name)) << "no page shows " << name;
}

TEST(Pages, links_lead_to_files) {
  auto all = pages(root / "docs");
  all.push_back(root / "README.md");
  for (const fs::path& path : all) {
    for (const auto& [target, anchor] : links(parse(path).prose)) {
      const fs::path file = path.parent_path() / target;
      EXPECT_TRUE(fs::exists(file)) << path << " links to " << target;
      if (!anchor.empty() && fs::exists(file)) {
        EXPECT_TRUE(anchors(parse(file).prose).contains(anchor))
            << path << ": no heading in " << target << " is #" << anchor;
      }
    }
  }
}

TEST(Pages, every_operation_has_its_derivation) {
  std::map<std::string, std::string> prose_that_links_to;  // by the source's name
  for (const fs::path& path : pages(folder)) {
    const std::string prose = parse(path).prose;
    for (const auto& [target, anchor] : links(prose)) prose_that_links_to[target] += prose;
  }
  for (const std::string& name : operation_names()) {
    const std::string& prose = prose_that_links_to["../../src/ops/" + name + ".cpp"];
    EXPECT_FALSE(prose.empty()) << "no page links to " << name << ".cpp";
    const std::string backward = name + "_backward";
    if (read(root / "include/handgrad/ops" / (name + ".h")).find(backward) == std::string::npos)
      continue;  // a composition of others
    EXPECT_NE(prose.find("`" + backward + "`"), std::string::npos) << "no page names " << backward;
  }
}

TEST(Pages, the_index_names_every_page) {
  std::set<std::string> listed;
  for (const Link& link : links(parse(folder / "README.md").prose)) listed.insert(link.target);
  for (const fs::path& path : pages(folder)) {
    const std::string name = path.filename().string();
    if (name == "README.md") continue;
    EXPECT_TRUE(listed.contains(name)) << name << " is not in README.md";
  }
}

// Code hosts process formulas as Markdown first: a backslash before punctuation is removed, an underscore after a
// bracket may start emphasis, and a displayed formula must be between lines of only "$$".
TEST(Pages, formulas_render_on_a_code_host) {
  const std::regex eaten(R"re(\\[^A-Za-z\s])re"), refused(R"re(\\(operatorname|newcommand|def)\b)re"),
      emphasis(R"re([)}\]|]_)re");
  for (const fs::path& path : pages(folder)) {
    std::istringstream lines(parse(path).prose);
    bool display = false;
    for (std::string line; std::getline(lines, line);) {
      EXPECT_FALSE(std::regex_search(line, eaten) || std::regex_search(line, refused)) << path << ": " << line;
      EXPECT_FALSE(!display && std::regex_search(line, emphasis)) << path << ": " << line;
      if (line == "$$") {
        display = !display;
        continue;
      }
      EXPECT_EQ(line.find("$$"), std::string::npos) << path << ": " << line;
      EXPECT_EQ(std::count(line.begin(), line.end(), '$') % 2, 0) << path << ": " << line;
      EXPECT_FALSE(display && (line.empty() || line.find('$') != std::string::npos)) << path << ": " << line;
    }
    EXPECT_FALSE(display) << path << ": a formula is not closed";
  }
}

}  // namespace
}  // namespace handgrad::test
