#include "handgrad/autograd/parameter_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <complex>

#include "handgrad/core/errors.h"
#include "handgrad/core/parallel.h"

namespace handgrad {

namespace detail {

void refuse_parameter(ParameterId id, std::size_t count) {
  throw RangeError(fmt::format("parameter store: there are {} parameters, got id {}", count, id));
}

void refuse_memory(const std::string& parameter, bool has_memory, bool allocated) {
  if (!allocated) throw Error(fmt::format("parameter {}: its store has no memory yet; call allocate()", parameter));
  if (!has_memory) {
    throw Error(fmt::format("parameter {}: its store has no gradients; call allocate_gradients()", parameter));
  }
  throw Error(fmt::format("parameter {}: it belongs to another store", parameter));
}

void refuse_unfinished(const std::string& parameter) {
  throw Error(fmt::format("parameter {}: its second gradient has not been added; call finish_gradients()", parameter));
}

}  // namespace detail

template <class S>
ParameterStore<S>& ParameterStore<S>::operator=(ParameterStore&& other) noexcept {
  parameters_ = std::exchange(other.parameters_, {});
  values_ = std::move(other.values_);
  gradients_ = std::move(other.gradients_);
  second_ = std::move(other.second_);
  second_id_ = std::exchange(other.second_id_, -1);
  unfinished_ = std::exchange(other.unfinished_, false);
  flat_size_ = std::exchange(other.flat_size_, 0);
  version_ = other.version_;
  allocated_ = std::exchange(other.allocated_, false);
  return *this;
}

template <class S>
ParameterId ParameterStore<S>::add(std::string name, const Shape& shape, ParameterRole role) {
  if (allocated_) throw Error("parameter " + name + ": the store has been allocated");
  if (find(name)) throw Error("parameter " + name + ": the name is taken");
  if (shape.rank() < 2 && role != ParameterRole::gain && role != ParameterRole::bias) {
    throw ShapeError(
        fmt::format("parameter {}: a table or a matrix must have two axes or more, got {}", name, shape.to_string()));
  }
  constexpr Index align = 64 / static_cast<Index>(sizeof(float));
  parameters_.push_back({std::move(name), shape, role, flat_size_});
  flat_size_ += (shape.size() + align - 1) / align * align;
  return static_cast<ParameterId>(parameters_.size()) - 1;
}

template <class S>
void ParameterStore<S>::allocate() {
  if (allocated_) throw Error("parameter store: allocate() must be called once, after all parameters are declared");
  values_ = Buffer<S>(flat_size_);
  std::fill(values_.begin(), values_.end(), S{});
  allocated_ = true;
}

template <class S>
void ParameterStore<S>::allocate_gradients() {
  if (has_gradients()) return;
  if (!allocated_) throw Error("parameter store: call allocate() before allocate_gradients()");
  gradients_ = Buffer<S>(flat_size_);
  zero_gradients();
}

template <class S>
void ParameterStore<S>::zero_gradients() {
  for (Buffer<S>* buffer : {&gradients_, &second_}) {
    S* gradients = buffer->data();
    parallel_ranges(buffer->size(), elementwise_tile,
                    [=](Index begin, Index end) { std::fill(gradients + begin, gradients + end, S{}); });
  }
  unfinished_ = false;
}

template <class S>
void ParameterStore<S>::add_second_gradient(ParameterId id) {
  second_ = Buffer<S>(parameter(id).shape.size());
  second_id_ = id;
  std::fill(second_.begin(), second_.end(), S{});
}

template <class S>
void ParameterStore<S>::finish_gradients() {
  unfinished_ = false;
  if (second_id_ < 0 || !has_gradients()) return;
  S *to = gradients_.data() + parameter(second_id_).offset, *from = second_.data();
  parallel_ranges(second_.size(), elementwise_tile, [=](Index begin, Index end) {
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
