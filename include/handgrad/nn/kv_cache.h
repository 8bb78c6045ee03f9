#pragma once

#include <vector>

#include "handgrad/config/config.h"
#include "handgrad/core/buffer.h"
#include "handgrad/core/views.h"

namespace handgrad {

/// Keys and values of the past tokens of one sequence, for every layer. The constructor allocates memory for the whole
/// context.
template <class S>
class KvCache {
 public:
  /// `config` is resolved, else ConfigError is thrown. Throws ResourceError.
  explicit KvCache(const ModelConfig& config);

  /// Tokens held in every layer.
  Index length() const { return length_; }
  Index capacity() const { return capacity_; }
  /// Keeps the first `length` tokens. Throws RangeError for a length below 0.
  void truncate(Index length);
  /// Call once after a forward pass has stored `tokens` tokens in every layer. Throws RangeError beyond capacity.
  void advance(Index tokens);
  /// Throws ShapeError unless layers, key heads, head width and context are those of this resolved config.
  void require_fit(const ModelConfig& config) const;

  /// Appends the keys and values of new tokens, (1, T, H_kv, D). Throws RangeError beyond capacity and for an unknown
  /// layer, ShapeError for heads of another shape.
  void store(Index layer, Heads<const S> keys, Heads<const S> values);
  /// Views of the first `time` tokens of a layer. They throw RangeError for an unknown layer and if fewer are stored.
  View<const S> keys(Index layer, Index time) const { return view(keys_, layer, time); }
  View<const S> values(Index layer, Index time) const { return view(values_, layer, time); }

 private:
  void require_layer(Index layer) const;
  View<const S> view(const std::vector<Buffer<S>>& layers, Index layer, Index time) const;

  Index heads_, width_, capacity_;
  Index length_ = 0;
  std::vector<Buffer<S>> keys_, values_;
};

}  // namespace handgrad
