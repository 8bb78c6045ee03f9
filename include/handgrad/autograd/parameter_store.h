#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "handgrad/core/buffer.h"
#include "handgrad/core/views.h"

namespace handgrad {

/// The role of a parameter in a model. Initialisation, weight decay and the count of product elements depend on it.
enum class ParameterRole {
  table,            ///< Rows selected by index: token and position embeddings.
  matrix,           ///< The weight of a projection.
  residual_matrix,  ///< The weight of a projection whose result is added to the residual stream.
  gain,             ///< The factor of a normalisation, initially 1.
  bias,             ///< The offset of a projection or normalisation, initially 0.
};

/// One named slice of a store.
struct Parameter {
  std::string name;  ///< "blocks/0/attention/qkv/weight": also its path in a checkpoint.
  Shape shape;
  ParameterRole role = ParameterRole::matrix;
  Index offset = 0;  ///< In elements, from the start of the store's buffers.

  /// Weight decay applies to tables and matrices, not to gains and biases.
  bool decays() const { return role != ParameterRole::gain && role != ParameterRole::bias; }
};

/// Index of a parameter in its store.
using ParameterId = int;

namespace detail {
[[noreturn]] void refuse_parameter(ParameterId id, std::size_t count);
[[noreturn]] void refuse_memory(const std::string& parameter, bool has_memory, bool allocated);
[[noreturn]] void refuse_unfinished(const std::string& parameter);
}  // namespace detail

template <class S>
class Tape;

/// The parameters of a model in one buffer, and their gradients in another of the same layout, so that an optimiser, a
/// norm or a checkpoint is one pass over flat memory. Slices are aligned to 64 bytes; the gaps between them stay 0.
template <class S>
class ParameterStore {
 public:
  ParameterStore() = default;
  /// A moved-from store has no parameters and no memory.
  ParameterStore(ParameterStore&& other) noexcept { *this = std::move(other); }
  ParameterStore& operator=(ParameterStore&& other) noexcept;

  /// Declares a parameter. Throws Error after allocate() and for a name in use, ShapeError for a table or a matrix with
  /// fewer than two axes.
  ParameterId add(std::string name, const Shape& shape, ParameterRole role);
  /// Declares a matrix if the shape has two axes or more, else a bias.
  ParameterId add(std::string name, const Shape& shape) {
    return add(std::move(name), shape, shape.rank() >= 2 ? ParameterRole::matrix : ParameterRole::bias);
  }
  /// Allocates the values, all 0. Throws Error for a second call, ResourceError.
  void allocate();
  /// Allocates the gradients, all 0, unless they exist. Without gradients the parameters are constants. Throws Error
  /// before allocate().
  void allocate_gradients();
  bool allocated() const { return allocated_; }
  bool has_gradients() const { return gradients_.size() > 0; }
  void zero_gradients();

  /// Allocates a second gradient for a parameter that is used twice (a tied embedding). Each use then has a sum of its
  /// own, whose order does not depend on the number of micro-batches. Throws RangeError for an unknown id.
  void add_second_gradient(ParameterId id);
  /// The second gradient of a parameter; null if it has none.
  S* second_gradient(ParameterId id) const { return id == second_id_ ? second_.data() : nullptr; }
  /// Adds the second gradient to the first and sets it to 0. Call it once per update, after the last backward pass.
  void finish_gradients();
  /// Throws Error if a backward pass has used the second gradient since the last finish_gradients().
  void require_finished() const {
    if (unfinished_) detail::refuse_unfinished(parameter(second_id_).name);
  }

  const std::vector<Parameter>& parameters() const { return parameters_; }
  /// Throws RangeError for an unknown id.
  const Parameter& parameter(ParameterId id) const {
    if (id < 0 || id >= std::ssize(parameters_)) detail::refuse_parameter(id, parameters_.size());
    return parameters_[id];
  }
  /// The parameter of that name; nullptr if there is none.
  const Parameter* find(std::string_view name) const;
  /// Number of scalars in all parameters, gaps not counted.
  Index scalar_count() const;
  /// Elements of the flat buffers, gaps included.
  Index flat_size() const { return flat_size_; }

  /// The flat buffers; null before allocate() and without gradients. A call of mutable_values() invalidates the graphs
  /// that have read values: their backward pass throws Error.
  S* mutable_values() { return ++version_, values_.data(); }
  const S* values() const { return values_.data(); }
  /// Backward passes write gradients through a const store.
  S* gradients() const { return gradients_.data(); }
  /// The number of calls of mutable_values().
  const Index& version() const { return version_; }

  /// Views of one parameter. They throw Error for a parameter of another store, before allocate() and without
  /// gradients.
  View<const S> value(const Parameter& p) const {
    require_own(p, values_.size());
    return {values() + p.offset, p.shape, contiguous_strides(p.shape)};
  }
  View<S> gradient(const Parameter& p) const {
    require_own(p, gradients_.size());
    return {gradients() + p.offset, p.shape, contiguous_strides(p.shape)};
  }

 private:
  friend class Tape<S>;
  void require_own(const Parameter& p, Index size) const {
    if (p.offset < 0 || p.offset > size - p.shape.size()) detail::refuse_memory(p.name, size > 0, allocated_);
  }

  std::vector<Parameter> parameters_;
  Buffer<S> values_;
  mutable Buffer<S> gradients_, second_;  // mutable: see gradients()
  mutable bool unfinished_ = false;
  ParameterId second_id_ = -1;
  Index flat_size_ = 0;
  Index version_ = 0;
  bool allocated_ = false;
};

}  // namespace handgrad
