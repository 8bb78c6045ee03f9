#pragma once

#include <vector>

#include "handgrad/config/config.h"
#include "handgrad/core/buffer.h"
#include "handgrad/core/views.h"

namespace handgrad {

/// Keys and values of the tokens that a model has seen, a layer each, for one sequence. Memory for the whole context is
/// taken once.
template <class S>
class KvCache {
 public:
  /// For a model of this (resolved) config. Throws ResourceError.
  explicit KvCache(const ModelConfig& config);

  /// Tokens held in every layer.
  Index length() const { return length_; }
  Index capacity() const { return capacity_; }
  /// Keeps the first `length` tokens.
  void truncate(Index length) { length_ = length < length_ ? length : length_; }
  /// After a forward pass over `tokens` tokens has stored them in every layer.
  void advance(Index tokens) { length_ += tokens; }

  /// Stores the keys and values of new tokens, (1, T, H_kv, D), behind those held. Throws RangeError beyond capacity.
  void store(Index layer, Heads<const S> keys, Heads<const S> values);
  /// Views of the first `time` tokens of a layer.
  View<const S> keys(Index layer, Index time) const { return view(keys_[static_cast<std::size_t>(layer)], time); }
  View<const S> values(Index layer, Index time) const { return view(values_[static_cast<std::size_t>(layer)], time); }

 private:
  View<const S> view(const Buffer<S>& buffer, Index time) const;

  Index heads_, width_, capacity_;
  Index length_ = 0;
  std::vector<Buffer<S>> keys_, values_;
};

}  // namespace handgrad
