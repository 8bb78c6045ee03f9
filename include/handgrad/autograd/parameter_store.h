#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "handgrad/core/buffer.h"
#include "handgrad/core/views.h"

namespace handgrad {

/// The part that a parameter plays in a model: initialisation, weight decay and the count of product elements read it.
enum class ParameterRole {
  table,            ///< Rows that an index selects: token and position embeddings.
  matrix,           ///< The weight of a projection.
  residual_matrix,  ///< The weight of a projection whose result is added to the residual stream.
  gain,             ///< The factor of a normalisation; 1 at first.
  bias,             ///< Added to a result; 0 at first.
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

/// All parameters of a model in one buffer, all gradients in another of the same layout, so that an optimiser, a norm
/// or a checkpoint is one pass over flat memory. Slices are aligned to 64 bytes; the gaps between them stay 0.
template <class S>
class ParameterStore {
 public:
  ParameterStore() = default;
  /// A store that was moved from has no parameters and no memory.
  ParameterStore(ParameterStore&& other) noexcept { *this = std::move(other); }
  ParameterStore& operator=(ParameterStore&& other) noexcept;

  /// Declares a parameter. Throws Error after allocate() and for a name that is taken, ShapeError for a table or a
  /// matrix of fewer than two axes.
  ParameterId add(std::string name, const Shape& shape, ParameterRole role);
  /// The same for a matrix if the shape has two axes or more, else for a bias.
  ParameterId add(std::string name, const Shape& shape) {
    return add(std::move(name), shape, shape.rank() >= 2 ? ParameterRole::matrix : ParameterRole::bias);
  }
  /// Makes the values, all 0. Throws Error for a second call, ResourceError.
  void allocate();
  /// Makes the gradients, all 0, unless they exist. Parameters of a store without gradients are constants. Throws Error
  /// before allocate().
  void allocate_gradients();
  bool allocated() const { return allocated_; }
  bool has_gradients() const { return gradients_.size() > 0; }
  void zero_gradients();

  /// Gives a parameter that is used twice (a tied embedding) a second gradient, for one of its uses. Each use is then
  /// summed in an order of its own, which does not depend on the number of micro-batches. Throws RangeError for an
  /// unknown id.
  void add_second_gradient(ParameterId id);
  /// The second gradient of this parameter; null if it has none.
  S* second_gradient(ParameterId id) const { return id == second_id_ ? second_.data() : nullptr; }
  /// Adds the second gradient to the first and sets it to 0. Call it once after the last backward pass of an update.
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

  /// The flat buffers; null before allocate() and without gradients. Asking for values to write makes graphs that have
  /// read them refuse their backward pass.
  S* mutable_values() { return ++version_, values_.data(); }
  const S* values() const { return values_.data(); }
  /// Backward passes write gradients through a store that is otherwise const.
  S* gradients() const { return gradients_.data(); }
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
  friend class Tape<S>;
  void require_own(const Parameter& p, Index size) const {
    if (p.offset < 0 || p.offset > size - p.shape.size()) detail::refuse_memory(p.name, size > 0, allocated_);
  }

  std::vector<Parameter> parameters_;
  Buffer<S> values_;
  mutable Buffer<S> gradients_, second_;  // a const model is trained by the tapes that read it
  mutable bool unfinished_ = false;
  ParameterId second_id_ = -1;
  Index flat_size_ = 0;
  Index version_ = 0;
  bool allocated_ = false;
};

}  // namespace handgrad
