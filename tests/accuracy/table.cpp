#include "accuracy/table.h"

#include <fmt/format.h>

#include <fstream>
#include <map>
#include <sstream>

namespace handgrad::test {

std::string to_markdown(const std::vector<Accuracy>& table) {
  std::string text;
  for (const Accuracy& row : table) {
    text += fmt::format("| {} | {} | {:.3g} | {:.2g} | {:.3g} | {:.2g} |\n", row.name, row.unit, row.float_worst,
                        row.float_mean, row.double_worst, row.double_mean);
  }
  return text;
}

namespace {

struct Documented {
  double float_worst, double_worst;
};

std::map<std::string, Documented> documented_rows() {
  std::ifstream file(HANDGRAD_SOURCE_DIR "/docs/proof.md");
  std::map<std::string, Documented> rows;
  bool inside = false;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("| function | unit |")) inside = true;
    if (!line.starts_with("|")) inside = false;
    if (!inside) continue;
    std::vector<std::string> cells;
    std::istringstream cut(line);
    for (std::string cell; std::getline(cut, cell, '|');) cells.push_back(cell);
    if (cells.size() < 6 || cells[3].find_first_of("0123456789") == std::string::npos) continue;  // title and rule
    const std::string name = cells[1].substr(1, cells[1].size() - 2);
    rows[name] = {std::stod(cells[3]), std::stod(cells[5])};
  }
  return rows;
}

}  // namespace

std::vector<Accuracy> expect_documented(Index inputs) {
  std::vector<Accuracy> table = accuracy_of_functions(inputs);
  for (Accuracy& row : accuracy_of_sums(inputs)) table.push_back(std::move(row));
  const auto rows = documented_rows();
  for (const Accuracy& measured : table) {
    const auto at = rows.find(measured.name);
    if (at == rows.end()) {
      ADD_FAILURE() << "docs/proof.md lacks this row:\n" << to_markdown({measured});
      continue;
    }
    EXPECT_LE(measured.float_worst, 1.25 * at->second.float_worst) << to_markdown({measured});
    EXPECT_LE(measured.double_worst, 1.25 * at->second.double_worst) << to_markdown({measured});
  }
  EXPECT_EQ(rows.size(), table.size()) << "docs/proof.md has rows that nothing measures";
  return table;
}

}  // namespace handgrad::test
