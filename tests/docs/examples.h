#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "support/values.h"

// Worked examples of docs/gradients: fenced blocks of lines "name = numbers", rows of a matrix separated by ';'. Each
// is run by the real operation, and every line is either read as an operand or compared to its printed digits.

namespace handgrad::test {

class Example {
 public:
  /// `text` holds the lines between the fences. Reports a line of another form as a failure.
  Example(std::string name, std::string place, const std::string& text);

  const std::string& name() const { return name_; }
  /// The page and the name, for messages.
  std::string place() const { return place_ + ", example " + name_; }

  bool has(const std::string& line) const { return lines_.contains(line); }
  double number(const std::string& line, double otherwise);
  /// An array of the written shape: (n), or (rows, n) if there are rows.
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

  /// Compares computed numbers with those of the line, to half a unit of the last printed digit. A result without a
  /// line is not an error.
  void expect(const std::string& line, std::span<const double> computed);
  void expect(const std::string& line, const std::vector<double>& computed) { expect(line, std::span(computed)); }
  /// Fails for unread lines, and if nothing was compared.
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
/// The functions that run the examples, by name.
const std::map<std::string, Runner>& example_runners();

}  // namespace handgrad::test
