#pragma once

#include <string>
#include <string_view>
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

/// All parameters of a model in one buffer, all gradients in another of the same layout, so that an optimiser, a norm
/// or a checkpoint is one pass over flat memory. Slices are aligned to 64 bytes; the gaps between them stay 0.
template <class S>
class ParameterStore {
 public:
  /// Declares a parameter. Only before allocate(); throws Error afterwards or for a name that is taken.
  ParameterId add(std::string name, const Shape& shape);
  /// Makes the values, all 0. Throws ResourceError.
  void allocate();
  /// Makes the gradients, all 0, if there are none yet. A store without gradients takes part as constants.
  void allocate_gradients();
  bool has_gradients() const { return gradients_.size() > 0; }
  void zero_gradients();

  /// Gives a parameter with two users (a tied embedding) a second gradient for one of them, so that each use is summed
  /// in an order of its own, whatever the number of micro-batches; fold_deferred() adds it to the first.
  void defer(ParameterId id);
  bool defers(ParameterId id) const { return id == deferred_id_; }
  S* deferred_gradient() const { return const_cast<S*>(deferred_.data()); }
  void fold_deferred();

  const std::vector<Parameter>& parameters() const { return parameters_; }
  const Parameter& parameter(ParameterId id) const { return parameters_[static_cast<std::size_t>(id)]; }
  /// The parameter of that name; nullptr if there is none.
  const Parameter* find(std::string_view name) const;
  /// Number of scalars in all parameters, gaps not counted.
  Index scalar_count() const;
  /// Elements of the flat buffers, gaps included.
  Index flat_size() const { return flat_size_; }

  /// The flat buffers. Asking for values to write makes graphs that have read them refuse their backward pass.
  S* mutable_values() { return ++version_, values_.data(); }
  const S* values() const { return values_.data(); }
  /// A gradient buffer is written by backward passes through a store that is otherwise const.
  S* gradients() const { return const_cast<S*>(gradients_.data()); }
  /// Counts calls of mutable_values().
  const Index& version() const { return version_; }

  View<const S> value(const Parameter& p) const { return {values() + p.offset, p.shape, dense_strides(p.shape)}; }
  View<S> gradient(const Parameter& p) const { return {gradients() + p.offset, p.shape, dense_strides(p.shape)}; }

 private:
  std::vector<Parameter> parameters_;
  Buffer<S> values_, gradients_, deferred_;
  ParameterId deferred_id_ = -1;
  Index flat_size_ = 0;
  Index version_ = 0;
};

}  // namespace handgrad
