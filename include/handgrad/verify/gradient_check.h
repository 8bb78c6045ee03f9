#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "handgrad/core/tensor.h"
#include "handgrad/verify/float_gradients.h"
#include "handgrad/verify/subject.h"
#include "handgrad/verify/tolerances.h"

namespace handgrad {

namespace detail {
/// Throws RangeError unless 0 <= i < count.
void require_operand(int i, int count);
/// Declares and fills one parameter per operand. Throws ShapeError for an empty operand.
template <class S>
ParameterStore<S> store_of(std::span<const Tensor<double>> operands);
/// Element i of the weights w of <f, w>: a function of the seed.
double random_weight(std::uint64_t seed, Index i);
}  // namespace detail

/// The operands of a function under test, as Vars of any scalar.
template <class S>
class Inputs {
 public:
  Inputs(Tape<S>& tape, const ParameterStore<S>& store) : tape_(tape), store_(store) {}
  /// Operand i. Throws RangeError if there is no such operand.
  Var<S> operator[](int i) const {
    detail::require_operand(i, static_cast<int>(store_.parameters().size()));
    return tape_.parameter(store_, i);
  }
  Tape<S>& tape() const { return tape_; }

 private:
  Tape<S>& tape_;
  const ParameterStore<S>& store_;
};

/// A function f of Inputs<S> as a Subject. Its weights are random, a function of the seed.
template <class S, class F>
class OperandFunction final : public verify::Subject<S> {
 public:
  /// Throws ShapeError for an empty operand.
  OperandFunction(F f, std::span<const Tensor<double>> operands, std::uint64_t seed)
      : f_(std::forward<F>(f)), seed_(seed), store_(detail::store_of<S>(operands)) {}
  ParameterStore<S>& store() override { return store_; }
  Var<S> value(Tape<S>& tape) override { return f_(Inputs<S>(tape, store_)); }
  double weight(Index i) const override { return detail::random_weight(seed_, i); }

 private:
  F f_;
  std::uint64_t seed_;
  ParameterStore<S> store_;
};

struct GradientCheckOptions {
  Index entries =
      200;  ///< Largest number of entries of each tensor, 1 or more, drawn at random; all if there are fewer.
  double complex_step = 1e-30;
  bool differences = true;                    ///< Also compare with central differences.
  double difference_step = 1e-3;              ///< h / max(1, |x|); the formula is of fourth order.
  std::uint64_t seed = 1;                     ///< Seed of the weights w and of the drawn entries.
  int workers = 1;                            ///< Threads; each evaluates on its own copy.
  std::function<void(double)> progress = {};  ///< Receives the share that is done.
};

/// One entry of one gradient, and its reference values.
struct GradientEntry {
  std::string tensor;
  Index index = 0;
  double value = 0.0;                ///< By the backward pass.
  double complex_step = 0.0;         ///< Im f(x + ih) / h.
  std::optional<double> difference;  ///< (8 (f(x + h) - f(x - h)) - (f(x + 2h) - f(x - 2h))) / 12h.
  double complex_error = 0.0;
  double difference_error = 0.0;
  bool kink = false;       ///< The function has a kink within the step of the differences, which are then not used.
  bool undefined = false;  ///< The function has a kink at x itself, and no derivative there.
};

/// The result of a check. Error of an entry = |a - c| / max(largest gradient of its tensor, small_share x the largest
/// gradient of all tensors).
struct GradientReport {
  std::vector<GradientEntry> entries;
  /// The largest gradient of each tensor, including entries that were not drawn.
  std::map<std::string, double> largest;
  double worst_complex_error = 0.0;
  double worst_difference_error = 0.0;
  /// The same relative to the entry itself, over entries above 1e-4 of their tensor's largest.
  double worst_relative_complex_error = 0.0;
  double worst_relative_difference_error = 0.0;
  /// One sentence for each violated rule of backward passes: a gradient that is not added to the existing one, an
  /// operand that does not keep its bits. The errors above do not include these.
  std::vector<std::string> violations;

  /// Computes the errors from the values. The worst errors exclude entries without a derivative; the worst difference
  /// errors also exclude kinks.
  void compute_errors();
  /// True if every error is within its limit and no rule was violated.
  bool passed(const GradientTolerances& limits = operation_tolerances) const;
  /// "operand 0[3]" for every entry at a kink.
  std::vector<std::string> kinks() const;
  /// The violations and the `count` worst entries, one per line.
  std::string worst(std::size_t count) const;
};

/// Checks the backward pass of a function in double: against the complex step and, unless options.differences is
/// false, against central differences. It also proves that gradients are added to the existing ones, by a second pass
/// into random numbers, and that operands and intermediate values keep their bits; GradientReport::violations names
/// violations of these rules. Throws Error for a function whose value differs between two evaluations,
/// RangeError for options that would check nothing.
GradientReport check_gradients(const verify::Subjects& subjects, const GradientCheckOptions& options = {});

/// The same for f, a function of Inputs<S> for any scalar S that returns a contiguous Var<S>, at the given operands.
template <class F>
GradientReport check_gradients(F f, std::span<const Tensor<double>> operands,
                               const GradientCheckOptions& options = {}) {
  const auto make = [&](auto scalar) {
    using S = decltype(scalar);
    return [&f, operands, seed = options.seed]() -> std::unique_ptr<verify::Subject<S>> {
      return std::make_unique<OperandFunction<S, F&>>(f, operands, seed);
    };
  };
  return check_gradients(verify::Subjects{make(double{}), make(std::complex<double>{})}, options);
}

}  // namespace handgrad
