#include "handgrad/verify/subject.h"

#include <algorithm>
#include <atomic>
#include <mutex>

#include "core/instantiate.h"
#include "core/math.h"
#include "handgrad/verify/operand_watch.h"

namespace handgrad::verify {
namespace {

template <class S>
Tensor<S> weights_of(const Subject<S>& subject, const Shape& shape) {
  Tensor<S> weights(shape);
  for (Index i = 0; i < weights.size(); ++i) weights[i] = constant<S>(subject.weight(i));
  return weights;
}

}  // namespace

template <class S>
std::vector<S> evaluate(Subject<S>& subject) {
  Tape<S> tape(false);
  tape.poison_memory();
  const Var<S> value = subject.value(tape);
  return {value.view().data, value.view().data + value.size()};
}

template <class S>
double add_gradient(Subject<S>& subject) {
  subject.store().allocate_gradients();
  Tape<S> tape;
  tape.poison_memory();
  const Var<S> value = subject.value(tape);
  const Tensor<S> weights = weights_of(subject, value.shape());
  double sum = 0.0;
  for (Index i = 0; i < value.size(); ++i) {
    sum += static_cast<double>(weights[i]) * static_cast<double>(value.view().data[i]);
  }
  tape.backward(value, weights);
  subject.store().finish_gradients();
  return sum;
}

template <class S>
std::vector<std::string> watched_gradient(Subject<S>& subject) {
  ParameterStore<S>& store = subject.store();
  store.allocate_gradients();
  store.zero_gradients();
  OperandWatch<S> watch(store);
  Tape<S> tape;
  tape.poison_memory();
  tape.observe(watch);
  const Var<S> value = subject.value(tape).keep();
  const Tensor<S> weights = weights_of(subject, value.shape());
  tape.backward(value, weights);
  store.finish_gradients();
  std::vector<std::string> found = watch.violations();
  if (!std::equal(weights.span().begin(), weights.span().end(), value.gradient().data)) {
    found.push_back(tape.describe(value) + ", backward: changed the gradient of its result");
  }
  return found;
}

template <class S>
void for_each_evaluation(const SubjectFactory<S>& make, int workers, Index count,
                         const std::function<void(Index, Subject<S>&)>& f,
                         const std::function<void(double)>& progress) {
  std::atomic<Index> next{0};
  Index finished = 0;
  std::mutex reporting;
  parallel_tiles(std::max(1, workers), [&](Index) {
    const ThreadScope one_thread(1);
    const std::unique_ptr<Subject<S>> subject = make();
    for (Index i = next++; i < count; i = next++) {
      f(i, *subject);
      const std::lock_guard lock(reporting);
      ++finished;
      if (progress) progress(static_cast<double>(finished) / static_cast<double>(count));
    }
  });
}

#define HANDGRAD_INSTANTIATE(S)                                                     \
  template std::vector<S> evaluate(Subject<S>&);                                    \
  template void for_each_evaluation(const SubjectFactory<S>&, int, Index,           \
                                    const std::function<void(Index, Subject<S>&)>&, \
                                    const std::function<void(double)>&);
HANDGRAD_FOR_ALL_SCALARS(HANDGRAD_INSTANTIATE)
#undef HANDGRAD_INSTANTIATE
#define HANDGRAD_INSTANTIATE(S)              \
  template double add_gradient(Subject<S>&); \
  template std::vector<std::string> watched_gradient(Subject<S>&);
HANDGRAD_FOR_REAL_SCALARS(HANDGRAD_INSTANTIATE)
#undef HANDGRAD_INSTANTIATE

}  // namespace handgrad::verify
