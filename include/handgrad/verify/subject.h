#pragma once

#include <complex>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "handgrad/autograd/tape.h"
#include "handgrad/core/parallel.h"

namespace handgrad::verify {

/// A function under test, from the parameters of a store to a value. The check is of the derivative of
/// sum_i weight(i) value[i].
template <class S>
class Subject {
 public:
  virtual ~Subject() = default;
  virtual ParameterStore<S>& store() = 0;
  /// Computes the value on this tape. It must be contiguous.
  virtual Var<S> value(Tape<S>& tape) = 0;
  virtual double weight(Index /*i*/) const { return 1.0; }
};

/// Makes a Subject with the same parameter values at each call.
template <class S>
using SubjectFactory = std::function<std::unique_ptr<Subject<S>>()>;

/// One function in the scalars that a check needs.
struct Subjects {
  SubjectFactory<double> in_double;
  SubjectFactory<std::complex<double>> in_complex;
};

/// All elements of the value, computed without recording, in memory that was filled with NaN.
template <class S>
std::vector<S> evaluate(Subject<S>& subject);

/// Adds the gradient of sum_i weight(i) value[i] to the gradients of the store, which it allocates if there are none.
/// Returns that sum.
template <class S>
double add_gradient(Subject<S>& subject);

/// Sets the gradients of the store, as add_gradient does. Returns one sentence for each operand that the pass changed.
template <class S>
std::vector<std::string> watched_gradient(Subject<S>& subject);

/// Calls f(i, subject) for 0 <= i < count, on `workers` threads, each with a subject of its own that runs on one
/// thread. `progress`, if given, receives the share that is done; its calls do not overlap.
template <class S>
void for_each_evaluation(const SubjectFactory<S>& make, int workers, Index count,
                         const std::function<void(Index, Subject<S>&)>& f,
                         const std::function<void(double)>& progress = {});

}  // namespace handgrad::verify
