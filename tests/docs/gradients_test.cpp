#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>

#include "support/examples.h"

// The pages of docs/ tell the truth: their worked examples are run, their links lead somewhere, no operation is left
// out.

namespace handgrad::testing {
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

// Targets of a page's links to files, without their anchors.
std::vector<std::string> links(const std::string& prose) {
  static const std::regex link(R"re(\]\(([^)#\s]+)(#[^)]*)?\))re");
  std::vector<std::string> targets;
  for (std::sregex_iterator i(prose.begin(), prose.end(), link), end; i != end; ++i) {
    if (std::string target = (*i)[1]; target.find("://") == std::string::npos) targets.push_back(std::move(target));
  }
  return targets;
}

TEST(Pages, examples_print_what_the_operations_compute) {
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
    for (const std::string& target : links(parse(path).prose)) {
      EXPECT_TRUE(fs::exists(path.parent_path() / target)) << path << " links to " << target;
    }
  }
}

TEST(Pages, every_operation_has_its_derivation) {
  std::map<std::string, std::string> prose_that_links_to;  // by the source's name
  for (const fs::path& path : pages(folder)) {
    const std::string prose = parse(path).prose;
    for (const std::string& target : links(prose)) prose_that_links_to[target] += prose;
  }
  for (const auto& entry : fs::directory_iterator(root / "include/handgrad/ops")) {
    const std::string name = entry.path().stem().string();
    if (name == "ops") continue;
    const std::string& prose = prose_that_links_to["../../src/ops/" + name + ".cpp"];
    EXPECT_FALSE(prose.empty()) << "no page links to " << name << ".cpp";
    const std::string backward = name + "_backward";
    if (read(entry.path()).find(backward) == std::string::npos) continue;  // a composition of others
    EXPECT_NE(prose.find("`" + backward + "`"), std::string::npos) << "no page names " << backward;
  }
}

TEST(Pages, the_index_names_every_page) {
  const auto listed = links(parse(folder / "README.md").prose);
  for (const fs::path& path : pages(folder)) {
    const std::string name = path.filename().string();
    if (name == "README.md") continue;
    EXPECT_NE(std::find(listed.begin(), listed.end(), name), listed.end()) << name << " is not in README.md";
  }
}

// Code hosts take formulas through Markdown first: it eats a backslash before punctuation, and a formula of its own
// must stand between lines of "$$" alone.
TEST(Pages, formulas_render_on_a_code_host) {
  const std::regex eaten(R"re(\\[^A-Za-z\s])re"), refused(R"re(\\(operatorname|newcommand|def)\b)re");
  for (const fs::path& path : pages(folder)) {
    std::istringstream lines(parse(path).prose);
    bool display = false;
    for (std::string line; std::getline(lines, line);) {
      EXPECT_FALSE(std::regex_search(line, eaten) || std::regex_search(line, refused)) << path << ": " << line;
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
}  // namespace handgrad::testing
