#include "handgrad/optim/optimizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/lanes.h"
#include "handgrad/core/errors.h"
#include "handgrad/core/parallel.h"

namespace handgrad {
namespace {

constexpr Index tile = 65536;

template <class S>
Buffer<S> zeros(Index size) {
  Buffer<S> buffer(size);
  std::fill(buffer.begin(), buffer.end(), S(0));
  return buffer;
}

std::string described(const std::vector<Parameter>& parameters) {
  return parameters.empty()
             ? "none"
             : fmt::format("{} from {} {} on", parameters.size(), parameters[0].name, parameters[0].shape.to_string());
}

void check_share(const char* what, double value) {
  if (!(value >= 0.0 && value < 1.0)) {
    throw RangeError(fmt::format("{}: must be in [0, 1), got {}", what, value));
  }
}

void check_not_negative(const char* what, double value) {
  if (!(value >= 0.0) || !std::isfinite(value)) {
    throw RangeError(fmt::format("{}: must be finite and 0 or more, got {}", what, value));
  }
}

// Calls update(begin, end, decay) for tiles of all parameters. A tile belongs to one parameter, so that `decay` is the
// same for all its elements.
template <class S, class F>
void for_each_tile(const ParameterStore<S>& store, F&& update) {
  const auto& parameters = store.parameters();
  std::vector<std::pair<Index, const Parameter*>> tiles;  // start of the tile, its parameter
  for (const Parameter& p : parameters) {
    for (Index begin = 0; begin < p.shape.size(); begin += tile) tiles.emplace_back(begin, &p);
  }
  parallel_tiles(std::ssize(tiles), [&](Index i) {
    const auto [begin, p] = tiles[i];
    update(p->offset + begin, p->offset + std::min(begin + tile, p->shape.size()), p->decays());
  });
}

}  // namespace

template <class S>
double gradient_norm(const ParameterStore<S>& store) {
  if (!store.has_gradients() && store.flat_size() > 0) {
    throw Error("gradient norm: the store has no gradients; call allocate_gradients()");
  }
  store.require_finished();
  const S* g = store.gradients();
  const Index size = store.flat_size();
  std::vector<double> partial((size + tile - 1) / tile);
  parallel_ranges(size, tile, [&](Index begin, Index end) {
    partial[begin / tile] = lane_sum<double>(
        end - begin, [&](Index i) { return static_cast<double>(g[begin + i]) * static_cast<double>(g[begin + i]); });
  });
  double sum = 0.0;
  for (const double p : partial) sum += p;
  return std::sqrt(sum);
}

double clip_factor(double norm, double max_norm) {
  if (!(max_norm >= 0.0)) throw RangeError(fmt::format("clipping: the norm must be 0 or more, got {}", max_norm));
  return max_norm > 0.0 && norm > max_norm ? max_norm / norm : 1.0;
}

template <class S>
void Optimizer<S>::set_updates(Index updates) {
  if (updates < 0) throw RangeError(fmt::format("optimizer: the number of updates must be 0 or more, got {}", updates));
  updates_ = updates;
}

template <class S>
void Optimizer<S>::check_state(std::size_t i, std::size_t count) {
  if (i >= count) throw RangeError(fmt::format("optimizer: there are {} states, got state {}", count, i));
}

template <class S>
void Optimizer<S>::check_step(const ParameterStore<S>& store, double lr, double gradient_scale) const {
  const auto same = [](const Parameter& a, const Parameter& b) { return a.shape == b.shape && a.name == b.name; };
  const auto& own = store.parameters();
  if (!std::equal(own.begin(), own.end(), parameters_.begin(), parameters_.end(), same)) {
    throw Error(fmt::format("optimizer: the store must have the parameters of the constructor, got {} for {}",
                            described(own), described(parameters_)));
  }
  if (!store.has_gradients() && !own.empty()) {
    throw Error("optimizer: the store has no gradients; call allocate_gradients() before the forward pass");
  }
  store.require_finished();
  if (!(lr >= 0.0) || !std::isfinite(lr)) {
    throw RangeError(fmt::format("optimizer: the rate must be finite and 0 or more, got {}", lr));
  }
  if (!std::isfinite(gradient_scale)) {
    throw RangeError(fmt::format("optimizer: the gradient scale must be finite, got {}", gradient_scale));
  }
}

template <class S>
AdamW<S>::AdamW(const ParameterStore<S>& store, const AdamWOptions& options)
    : Optimizer<S>(store), options_(options), m_(zeros<S>(store.flat_size())), v_(zeros<S>(store.flat_size())) {
  check_share("AdamW: beta1", options.beta1);
  check_share("AdamW: beta2", options.beta2);
  check_not_negative("AdamW: eps", options.eps);
  check_not_negative("AdamW: weight decay", options.weight_decay);
}

template <class S>
void AdamW<S>::step(ParameterStore<S>& store, double lr, double gradient_scale) {
  this->check_step(store, lr, gradient_scale);
  const double t = static_cast<double>(++this->updates_);
  const S b1 = constant<S>(options_.beta1), b2 = constant<S>(options_.beta2);
  const S rest1 = constant<S>(1.0 - options_.beta1), rest2 = constant<S>(1.0 - options_.beta2);
  const S m_share = constant<S>(1.0 / (1.0 - std::pow(options_.beta1, t)));
  const S v_share = constant<S>(1.0 / (1.0 - std::pow(options_.beta2, t)));
  const S eps = constant<S>(options_.eps), rate = constant<S>(lr), scale = constant<S>(gradient_scale);
  S *theta = store.mutable_values(), *m = m_.data(), *v = v_.data();
  const S* gradients = store.gradients();
  for_each_tile(store, [=, this](Index begin, Index end, bool decays) {
    const S decay = constant<S>(decays ? options_.weight_decay : 0.0);
    for (Index i = begin; i < end; ++i) {
      const S g = scale * gradients[i];
      m[i] = b1 * m[i] + rest1 * g;
      v[i] = b2 * v[i] + rest2 * (g * g);
      theta[i] -= rate * (m[i] * m_share / (std::sqrt(v[i] * v_share) + eps) + decay * theta[i]);
    }
  });
}

template <class S>
Sgd<S>::Sgd(const ParameterStore<S>& store, const SgdOptions& options)
    : Optimizer<S>(store), options_(options), velocity_(zeros<S>(store.flat_size())) {
  check_share("SGD: momentum", options.momentum);
  check_not_negative("SGD: weight decay", options.weight_decay);
}

template <class S>
void Sgd<S>::step(ParameterStore<S>& store, double lr, double gradient_scale) {
  this->check_step(store, lr, gradient_scale);
  ++this->updates_;
  const S momentum = constant<S>(options_.momentum), rate = constant<S>(lr), scale = constant<S>(gradient_scale);
  S *theta = store.mutable_values(), *velocity = velocity_.data();
  const S* gradients = store.gradients();
  for_each_tile(store, [=, this](Index begin, Index end, bool decays) {
    const S decay = constant<S>(decays ? options_.weight_decay : 0.0);
    for (Index i = begin; i < end; ++i) {
      velocity[i] = momentum * velocity[i] + scale * gradients[i] + decay * theta[i];
      theta[i] -= rate * velocity[i];
    }
  });
}

template double gradient_norm<float>(const ParameterStore<float>&);
template double gradient_norm<double>(const ParameterStore<double>&);
template class Optimizer<float>;
template class Optimizer<double>;
template class AdamW<float>;
template class AdamW<double>;
template class Sgd<float>;
template class Sgd<double>;

}  // namespace handgrad
