#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "handgrad/core/buffer.h"
#include "handgrad/core/views.h"

namespace handgrad {

/// One named slice of a store.
struct Parameter {
  std::string name;  ///< "blocks/0/attention/qkv/weight": also its path in a checkpoint.
  Shape shape;
  Index offset = 0;    ///< In elements, from the start of the store's buffers.
  bool decay = false;  ///< Whether weight decay applies: tensors of two axes and more.
};

/// Index of a parameter in its store.
using ParameterId = int;

namespace detail {
[[noreturn]] void refuse_parameter(ParameterId id, std::size_t count);
[[noreturn]] void refuse_memory(const std::string& parameter, bool has_memory, bool allocated);
}  // namespace detail

/// All parameters of a model in one buffer, all gradients in another of the same layout, so that an optimiser, a norm
/// or a checkpoint is one pass over flat memory. Slices are aligned to 64 bytes; the gaps between them stay 0.
template <class S>
class ParameterStore {
 public:
  ParameterStore() = default;
  /// A store that was moved from has no parameters and no memory.
  ParameterStore(ParameterStore&& other) noexcept { *this = std::move(other); }
  ParameterStore& operator=(ParameterStore&& other) noexcept;

  /// Declares a parameter. Only before allocate(); throws Error afterwards or for a name that is taken.
  ParameterId add(std::string name, const Shape& shape);
  /// Makes the values, all 0. Throws Error for a second call, ResourceError.
  void allocate();
  /// Makes the gradients, all 0, if there are none yet. A store without gradients takes part as constants. Throws Error
  /// before allocate().
  void allocate_gradients();
  bool allocated() const { return allocated_; }
  bool has_gradients() const { return gradients_.size() > 0; }
  void zero_gradients();

  /// Gives a parameter with two users (a tied embedding) a second gradient for one of them, so that each use is summed
  /// in an order of its own, whatever the number of micro-batches; fold_deferred() adds it to the first. Throws
  /// RangeError for an unknown id.
  void defer(ParameterId id);
  bool defers(ParameterId id) const { return id == deferred_id_; }
  S* deferred_gradient() const { return const_cast<S*>(deferred_.data()); }
  void fold_deferred();

  const std::vector<Parameter>& parameters() const { return parameters_; }
  /// Throws RangeError for an unknown id.
  const Parameter& parameter(ParameterId id) const {
    if (id < 0 || static_cast<std::size_t>(id) >= parameters_.size()) detail::refuse_parameter(id, parameters_.size());
    return parameters_[static_cast<std::size_t>(id)];
  }
  /// The parameter of that name; nullptr if there is none.
  const Parameter* find(std::string_view name) const;
  /// Number of scalars in all parameters, gaps not counted.
  Index scalar_count() const;
  /// Elements of the flat buffers, gaps included.
  Index flat_size() const { return flat_size_; }

  /// The flat buffers; null before allocate() and without gradients. Asking for values to write makes graphs that have
  /// read them refuse their backward pass.
  S* mutable_values() { return ++version_, values_.data(); }
  const S* values() const { return values_.data(); }
  /// A gradient buffer is written by backward passes through a store that is otherwise const.
  S* gradients() const { return const_cast<S*>(gradients_.data()); }
  /// Counts calls of mutable_values().
  const Index& version() const { return version_; }

  /// Views of one parameter. Throw Error for one of another store, before allocate() and without gradients.
  View<const S> value(const Parameter& p) const {
    require_own(p, values_.size());
    return {values() + p.offset, p.shape, contiguous_strides(p.shape)};
  }
  View<S> gradient(const Parameter& p) const {
    require_own(p, gradients_.size());
    return {gradients() + p.offset, p.shape, contiguous_strides(p.shape)};
  }

 private:
  void require_own(const Parameter& p, Index size) const {
    if (p.offset < 0 || p.offset > size - p.shape.size()) detail::refuse_memory(p.name, size > 0, allocated_);
  }

  std::vector<Parameter> parameters_;
  Buffer<S> values_, gradients_, deferred_;
  ParameterId deferred_id_ = -1;
  Index flat_size_ = 0;
  Index version_ = 0;
  bool allocated_ = false;
};

}  // namespace handgrad
