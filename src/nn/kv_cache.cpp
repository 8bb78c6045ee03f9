#include "handgrad/nn/kv_cache.h"

#include <fmt/format.h>

#include <algorithm>
#include <complex>

#include "handgrad/core/errors.h"
#include "nn/check_config.h"

namespace handgrad {

template <class S>
KvCache<S>::KvCache(const ModelConfig& config) : heads_(config.n_kv_heads), width_(0), capacity_(config.context) {
  require_resolved(config);
  width_ = config.d_model / config.n_heads;
  const Index size = Shape{capacity_, heads_, width_}.size();
  for (Index layer = 0; layer < config.n_layers; ++layer) {
    keys_.emplace_back(size);
    values_.emplace_back(size);
  }
}

template <class S>
void KvCache<S>::truncate(Index length) {
  if (length < 0) throw RangeError(fmt::format("key/value cache: the length must be 0 or more, got {}", length));
  length_ = std::min(length, length_);
}

template <class S>
void KvCache<S>::advance(Index tokens) {
  if (tokens < 0 || tokens > capacity_ - length_) {
    throw RangeError(fmt::format("key/value cache: {} tokens do not fit after {} of {}", tokens, length_, capacity_));
  }
  length_ += tokens;
}

template <class S>
void KvCache<S>::require_layer(Index layer) const {
  if (layer < 0 || layer >= std::ssize(keys_)) {
    throw RangeError(fmt::format("key/value cache: there are {} layers, got layer {}", keys_.size(), layer));
  }
}

template <class S>
void KvCache<S>::require_fit(const ModelConfig& config) const {
  const Index layers = std::ssize(keys_), width = config.d_model / config.n_heads;
  if (layers == config.n_layers && heads_ == config.n_kv_heads && width_ == width && capacity_ == config.context)
    return;
  throw ShapeError(
      fmt::format("key/value cache: it must be made for this model, {} layers, {} key heads of width {} and a context "
                  "of {}; got one for {}, {}, {} and {}",
                  config.n_layers, config.n_kv_heads, width, config.context, layers, heads_, width_, capacity_));
}

template <class S>
void KvCache<S>::store(Index layer, Heads<const S> keys, Heads<const S> values) {
  require_layer(layer);
  const auto fits = [&](const Heads<const S>& x) {
    return x && x.batch == 1 && x.time == keys.time && x.heads == heads_ && x.width == width_;
  };
  if (!fits(keys) || !fits(values)) {
    throw ShapeError(
        fmt::format("key/value cache: keys and values (1, T, {}, {}) are needed, got ({}, {}, {}, {}) and ({}, {}, {}, "
                    "{})",
                    heads_, width_, keys.batch, keys.time, keys.heads, keys.width, values.batch, values.time,
                    values.heads, values.width));
  }
  if (keys.time > capacity_ - length_) {
    throw RangeError(
        fmt::format("key/value cache: {} tokens do not fit after {} of {}", keys.time, length_, capacity_));
  }
  const auto copy = [&](Heads<const S> from, Buffer<S>& to) {
    for (Index t = 0; t < from.time; ++t) {
      for (Index h = 0; h < heads_; ++h) {
        const S* row = from.at(0, t, h);
        std::copy(row, row + width_, to.data() + ((length_ + t) * heads_ + h) * width_);
      }
    }
  };
  copy(keys, keys_[layer]);
  copy(values, values_[layer]);
}

template <class S>
View<const S> KvCache<S>::view(const std::vector<Buffer<S>>& layers, Index layer, Index time) const {
  require_layer(layer);
  if (time < 1 || time > capacity_) {
    throw RangeError(fmt::format("key/value cache: 1 to {} tokens can be read, got {}", capacity_, time));
  }
  const Shape shape{1, time, heads_, width_};
  return {layers[layer].data(), shape, contiguous_strides(shape)};
}

template class KvCache<float>;
template class KvCache<double>;
template class KvCache<std::complex<double>>;

}  // namespace handgrad
