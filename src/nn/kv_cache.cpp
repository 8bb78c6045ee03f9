#include "handgrad/nn/kv_cache.h"

#include <fmt/format.h>

#include <algorithm>
#include <complex>

#include "handgrad/core/errors.h"

namespace handgrad {

template <class S>
KvCache<S>::KvCache(const ModelConfig& config)
    : heads_(config.n_kv_heads), width_(config.d_model / config.n_heads), capacity_(config.context) {
  const Index size = Shape{capacity_, heads_, width_}.size();
  for (Index layer = 0; layer < config.n_layers; ++layer) {
    keys_.emplace_back(size);
    values_.emplace_back(size);
  }
}

template <class S>
void KvCache<S>::store(Index layer, Heads<const S> keys, Heads<const S> values) {
  if (keys.time > capacity_ - length_) {
    throw RangeError(
        fmt::format("key/value cache: {} tokens do not fit behind {} of {}", keys.time, length_, capacity_));
  }
  const auto copy = [&](Heads<const S> from, Buffer<S>& to) {
    for (Index t = 0; t < from.time; ++t) {
      for (Index h = 0; h < heads_; ++h) {
        const S* row = from.at(0, t, h);
        std::copy(row, row + width_, to.data() + ((length_ + t) * heads_ + h) * width_);
      }
    }
  };
  copy(keys, keys_[static_cast<std::size_t>(layer)]);
  copy(values, values_[static_cast<std::size_t>(layer)]);
}

template <class S>
View<const S> KvCache<S>::view(const Buffer<S>& buffer, Index time) const {
  const Shape shape{1, time, heads_, width_};
  return {buffer.data(), shape, dense_strides(shape)};
}

template class KvCache<float>;
template class KvCache<double>;
template class KvCache<std::complex<double>>;

}  // namespace handgrad
