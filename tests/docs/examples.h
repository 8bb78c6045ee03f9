#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "support/values.h"

// Worked examples of docs/gradients: fenced blocks of lines "name = numbers", rows of a matrix parted by ';'. Each is
// run through the real operation, and every line is either read as an operand or compared to the digits it prints.

namespace handgrad::test {

class Example {
 public:
  /// `text` holds the lines between the fences. Reports a line that is no example's line as a failure.
  Example(std::string name, std::string place, const std::string& text);

  const std::string& name() const { return name_; }
  /// The page and the name, for messages.
  std::string place() const { return place_ + ", example " + name_; }

  bool has(const std::string& line) const { return lines_.contains(line); }
  double number(const std::string& line, double otherwise);
  /// Of the shape that is written: (n), or (rows, n) if there are rows.
  Tensor<double> tensor(const std::string& line);
  Tensor<double> tensor(const std::string& line, const Shape& shape);
  Index rows(const std::string& line) const;
  Index cols(const std::string& line) const;
  template <class T>
  std::vector<T> integers(const std::string& line) {
    std::vector<T> all;
    for (const double x : read(line)) all.push_back(static_cast<T>(x));
    return all;
  }

  /// Compares what was computed to the line's numbers, to half a unit of the last digit that is printed. A result
  /// without a line is not an error: an example shows what it wants to show.
  void expect(const std::string& line, std::span<const double> computed);
  void expect(const std::string& line, const std::vector<double>& computed) { expect(line, std::span(computed)); }
  /// Fails for lines that nobody read, and if nothing was compared.
  void finish() const;

 private:
  struct Line {
    std::vector<std::string> numbers;
    Index rows = 1;
    bool used = false;
  };
  std::vector<double> read(const std::string& line);

  std::string name_, place_;
  std::map<std::string, Line> lines_;
  int compared_ = 0;
};

using Runner = std::function<void(Example&)>;
/// What runs the examples, by their names.
const std::map<std::string, Runner>& example_runners();

}  // namespace handgrad::test
