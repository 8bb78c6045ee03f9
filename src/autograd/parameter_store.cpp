#include "handgrad/autograd/parameter_store.h"

#include <algorithm>
#include <complex>

#include "handgrad/core/errors.h"
#include "handgrad/core/parallel.h"

namespace handgrad {

template <class S>
ParameterId ParameterStore<S>::add(std::string name, const Shape& shape) {
  if (values_.size() > 0) throw Error("parameter " + name + ": the store has been allocated");
  if (find(name)) throw Error("parameter " + name + ": the name is taken");
  constexpr Index align = 64 / static_cast<Index>(sizeof(float));
  parameters_.push_back({std::move(name), shape, flat_size_, shape.rank() >= 2});
  flat_size_ += (shape.size() + align - 1) / align * align;
  return static_cast<ParameterId>(parameters_.size()) - 1;
}

template <class S>
void ParameterStore<S>::allocate() {
  values_ = Buffer<S>(flat_size_);
  std::fill(values_.begin(), values_.end(), S{});
}

template <class S>
void ParameterStore<S>::allocate_gradients() {
  if (has_gradients()) return;
  gradients_ = Buffer<S>(flat_size_);
  zero_gradients();
}

template <class S>
void ParameterStore<S>::zero_gradients() {
  S *gradients = gradients_.data(), *deferred = deferred_.data();
  parallel_ranges(gradients_.size(), elementwise_tile,
                  [=](Index begin, Index end) { std::fill(gradients + begin, gradients + end, S{}); });
  parallel_ranges(deferred_.size(), elementwise_tile,
                  [=](Index begin, Index end) { std::fill(deferred + begin, deferred + end, S{}); });
}

template <class S>
void ParameterStore<S>::defer(ParameterId id) {
  deferred_id_ = id;
  deferred_ = Buffer<S>(parameter(id).shape.size());
  std::fill(deferred_.begin(), deferred_.end(), S{});
}

template <class S>
void ParameterStore<S>::fold_deferred() {
  if (deferred_id_ < 0) return;
  S *to = gradients_.data() + parameter(deferred_id_).offset, *from = deferred_.data();
  parallel_ranges(deferred_.size(), elementwise_tile, [=](Index begin, Index end) {
    for (Index i = begin; i < end; ++i) {
      to[i] += from[i];
      from[i] = S{};
    }
  });
}

template <class S>
const Parameter* ParameterStore<S>::find(std::string_view name) const {
  const auto found =
      std::find_if(parameters_.begin(), parameters_.end(), [&](const Parameter& p) { return p.name == name; });
  return found == parameters_.end() ? nullptr : &*found;
}

template <class S>
Index ParameterStore<S>::scalar_count() const {
  Index count = 0;
  for (const Parameter& p : parameters_) count += p.shape.size();
  return count;
}

template class ParameterStore<float>;
template class ParameterStore<double>;
template class ParameterStore<std::complex<double>>;

}  // namespace handgrad
