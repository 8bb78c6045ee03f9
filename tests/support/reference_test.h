#pragma once

#include <fmt/format.h>

#include <map>
#include <set>

#include "handgrad/core/parallel.h"
#include "handgrad/ops/dropout_mask.h"
#include "support/reference.h"
#include "support/values.h"

namespace handgrad::test {

/// A tolerance for arrays, and the largest difference so far.
class Closeness {
 public:
  explicit Closeness(double tolerance) : tolerance_(tolerance) {}

  /// |a - b| <= tolerance x the largest element of b, or `least` if that is more. Infinities must be the same.
  void expect(const std::vector<double>& a, const std::vector<double>& b, double least, const std::string& what) {
    ASSERT_EQ(a.size(), b.size()) << what;
    const double scale = std::max(largest(b), std::max(least, 1e-300));
    for (std::size_t i = 0; i < a.size(); ++i) {
      if (a[i] == b[i]) continue;
      const double error = std::abs(a[i] - b[i]) / scale;
      if (!(error <= worst_)) worst_ = error, place_ = what;
      ASSERT_LE(error, tolerance_) << what << " at " << i << ": " << a[i] << ", expected " << b[i];
    }
  }
  /// Its properties for --gtest_output.
  void record(const char* key = "worst_error") const {
    ::testing::Test::RecordProperty(key, fmt::format("{:.2g} {}", worst_, place_));
  }

  static double largest(const std::vector<double>& x) {
    double most = 0.0;
    for (const double v : x) most = std::max(most, std::isfinite(v) ? std::abs(v) : 0.0);
    return most;
  }

 private:
  double tolerance_, worst_ = 0.0;
  std::string place_;
};

/// Inputs, options and results of one operation: a group of a file (tools/reference/common.py).
class ReferenceCase {
 public:
  ReferenceCase(const Reference& file, std::string path) : file_(file), path_(std::move(path)) {}

  bool has(const std::string& name) const { return file_.has(path_ + "/" + name); }
  Shape shape(const std::string& name) const { return file_.shape(read(name)); }
  std::vector<double> values(const std::string& name) const { return file_.values(read(name)); }
  Tensor<double> tensor(const std::string& name) const { return file_.tensor(read(name)); }
  std::vector<Index> integers(const std::string& name) const { return file_.integers(read(name)); }
  std::vector<TokenId> tokens(const std::string& name) const { return file_.tokens(read(name)); }
  Mask mask(const std::string& name) const { return has(name) ? file_.mask(read(name)) : Mask(); }
  double number(const std::string& name) const {
    read(name);
    return file_.attribute(path_, name);
  }
  double number(const std::string& name, double otherwise) const {
    return file_.has_attribute(path_, name) ? number(name) : otherwise;
  }
  Index integer(const std::string& name, Index otherwise) const {
    return static_cast<Index>(number(name, static_cast<double>(otherwise)));
  }
  DropoutMask dropout() const {
    return {number("dropout", 0.0), static_cast<std::uint64_t>(integer("seed", 0)),
            static_cast<std::uint32_t>(integer("site", 0)), static_cast<std::uint64_t>(integer("first_row", 0))};
  }
  /// Names of the operands with a gradient.
  std::vector<std::string> operands() const {
    std::vector<std::string> found;
    for (const std::string& name : file_.names(path_)) {
      if (name != "y" && has("d" + name)) found.push_back(name);
    }
    return found;
  }
  /// Options of the case that the test has not read.
  std::string unread() const {
    std::string names;
    auto all = file_.names(path_);
    for (const std::string& name : file_.attributes(path_)) all.push_back(name);
    for (const std::string& name : all) {
      if (!read_.contains(name)) names += name + " ";
    }
    return names;
  }

 private:
  std::string read(const std::string& name) const {
    read_.insert(name);
    return path_ + "/" + name;
  }

  const Reference& file_;
  std::string path_;
  mutable std::set<std::string> read_;
};

/// Operands by name, viewed as the case states; an empty handle for one that it does not have.
class Operands {
 public:
  Var<double> operator[](const std::string& name) const {
    const auto place = seen_.find(name);
    return place == seen_.end() ? Var<double>() : place->second;
  }
  void add(const std::string& name, const Var<double>& x) { seen_.emplace(name, x); }

 private:
  std::map<std::string, Var<double>> seen_;
};

/// Rows of (kind, a, b, c), applied in turn.
inline Var<double> seen_as(Var<double> x, const std::vector<Index>& steps) {
  enum Kind { transpose, slice, split_last, reshape };
  for (std::size_t i = 0; i + 3 < steps.size(); i += 4) {
    const Index a = steps[i + 1], b = steps[i + 2], c = steps[i + 3];
    if (steps[i] == transpose) x = x.transpose(static_cast<int>(a), static_cast<int>(b));
    if (steps[i] == slice) x = x.slice(static_cast<int>(a), b, c);
    if (steps[i] == split_last) x = x.split_last(a);
    if (steps[i] == reshape) x = x.reshape({a, b, c});
  }
  return x;
}

/// f(operands, case) against the y of a case, and the gradient of every operand against its d<operand>.
template <class F>
void expect_case(const ReferenceCase& c, F& f, Closeness& closeness, const std::string& name) {
  Tape<double> tape;
  tape.poison_memory();
  const std::vector<std::string> names = c.operands();
  std::vector<Var<double>> leaves;
  Operands operands;
  double largest = 0.0;
  for (const std::string& operand : names) {
    leaves.push_back(tape.variable(c.tensor(operand)));
    const std::string view = "view_" + operand;
    operands.add(operand, c.has(view) ? seen_as(leaves.back(), c.integers(view)) : leaves.back());
    largest = std::max(largest, Closeness::largest(c.values("d" + operand)));
  }
  const Var<double> y = f(operands, c);
  ASSERT_EQ(y.shape(), c.shape("y"));
  closeness.expect(elements(y), c.values("y"), 0.0, name + " y");
  tape.backward(y, c.tensor("dy"));
  for (std::size_t i = 0; i < names.size(); ++i) {
    closeness.expect(gradient(leaves[i]), c.values("d" + names[i]), 1e-6 * largest, name + " d" + names[i]);
  }
}

/// `place`: "operations/add", all cases of the group add in tests/data/operations.h5.
template <class F>
void run_reference_cases(const std::string& place, F f, double tolerance = 1e-13) {
  const ThreadScope one(1);
  const auto slash = place.find('/');
  static std::map<std::string, Reference> files;
  const std::string name = place.substr(0, slash) + ".h5", group = place.substr(slash + 1);
  const Reference& file = files.try_emplace(name, name).first->second;
  const std::vector<std::string> cases = file.names(group);
  ASSERT_GE(cases.size(), 4u) << place;
  Closeness closeness(tolerance);
  for (const std::string& c : cases) {
    SCOPED_TRACE(place + "/" + c);
    const ReferenceCase values(file, group + "/" + c);
    expect_case(values, f, closeness, c);
    EXPECT_EQ(values.unread(), "");
  }
  closeness.record();
  ::testing::Test::RecordProperty("cases", static_cast<int>(cases.size()));
}

}  // namespace handgrad::test

/// One line per operation and variant:
/// REFERENCE_TEST(add, plain, "operations/add", [](auto& x, auto&) { return add(x["a"], x["b"]); })
#define REFERENCE_TEST(operation, variant, place, ...) \
  TEST(Reference, operation##_##variant) {             \
    using namespace handgrad;                          \
    using namespace handgrad::test;                    \
    run_reference_cases(place, __VA_ARGS__);           \
  }
