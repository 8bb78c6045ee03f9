#include "docs/examples.h"

#include <cstdlib>
#include <sstream>

namespace handgrad::test {

Example::Example(std::string name, std::string place, const std::string& text)
    : name_(std::move(name)), place_(std::move(place)) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string key, equals;
    words >> key >> equals;
    Line entry;
    for (std::string word; words >> word;) {
      if (word == ";") {
        ++entry.rows;
      } else {
        entry.numbers.push_back(word);
      }
    }
    const bool good = equals == "=" && !entry.numbers.empty() &&
                      entry.numbers.size() % static_cast<std::size_t>(entry.rows) == 0 && !has(key);
    EXPECT_TRUE(good) << this->place() << ": \"" << line << "\" is not \"name = numbers\"";
    lines_[key] = std::move(entry);
  }
}

std::vector<double> Example::read(const std::string& line) {
  std::vector<double> values;
  if (!has(line)) {
    ADD_FAILURE() << place() << " lacks \"" << line << "\"";
    return values;
  }
  Line& entry = lines_.at(line);
  entry.used = true;
  for (const std::string& word : entry.numbers) {
    char* end = nullptr;
    values.push_back(std::strtod(word.c_str(), &end));
    EXPECT_EQ(*end, '\0') << place() << ": " << line << " holds \"" << word << "\"";
  }
  return values;
}

double Example::number(const std::string& line, double otherwise) {
  if (!has(line)) return otherwise;
  const auto values = read(line);
  EXPECT_EQ(values.size(), 1u) << place() << ": " << line;
  return values.at(0);
}

Index Example::rows(const std::string& line) const { return has(line) ? lines_.at(line).rows : 1; }

Index Example::cols(const std::string& line) const {
  return has(line) ? static_cast<Index>(lines_.at(line).numbers.size()) / rows(line) : 1;
}

Tensor<double> Example::tensor(const std::string& line) {
  return tensor(line, rows(line) == 1 ? Shape{cols(line)} : Shape{rows(line), cols(line)});
}

Tensor<double> Example::tensor(const std::string& line, const Shape& shape) {
  const auto values = read(line);
  return Tensor<double>(shape, std::span(values));
}

void Example::expect(const std::string& line, std::span<const double> computed) {
  if (!has(line)) return;
  const auto printed = read(line);
  const auto& words = lines_.at(line).numbers;
  ASSERT_EQ(printed.size(), computed.size()) << place() << ": " << line;
  for (std::size_t i = 0; i < printed.size(); ++i) {
    ++compared_;
    const double x = printed[i], y = computed[i];
    if (std::isfinite(x)) {
      const auto point = words[i].find('.');
      const double digits = point == std::string::npos ? 9.0 : static_cast<double>(words[i].size() - point - 1);
      EXPECT_NEAR(x, y, 0.5000001 * std::pow(10.0, -digits)) << place() << ": " << line << ", number " << i;
    } else {
      EXPECT_TRUE(std::isnan(x) ? std::isnan(y) : x == y) << place() << ": " << line << ", number " << i << " is " << y;
    }
  }
}

void Example::finish() const {
  EXPECT_GT(compared_, 0) << place() << " shows no result";
  for (const auto& [key, line] : lines_) {
    EXPECT_TRUE(line.used) << place() << ": nothing reads or computes \"" << key << "\"";
  }
}

}  // namespace handgrad::test
