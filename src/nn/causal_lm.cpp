#include "handgrad/nn/causal_lm.h"

#include <fmt/format.h>

#include <cmath>
#include <numeric>

#include "core/float_environment.h"
#include "core/instantiate.h"
#include "core/math.h"
#include "handgrad/core/errors.h"
#include "handgrad/core/parallel.h"
#include "handgrad/nn/dropout_sites.h"
#include "handgrad/nn/kv_cache.h"
#include "handgrad/ops/add.h"
#include "handgrad/ops/dropout.h"
#include "handgrad/ops/embedding.h"
#include "handgrad/ops/linear.h"
#include "handgrad/ops/linear_cross_entropy.h"
#include "nn/check_config.h"

namespace handgrad {
namespace {

// Position p: sin(p w_i) at feature 2i, cos(p w_i) at 2i + 1, w_i = 10000^(-2i/C) (Vaswani et al. 2017, section 3.5).
template <class S>
Tensor<S> sinusoid_table(Index positions, Index width) {
  const FloatEnvironment environment;
  Tensor<S> table(Shape{positions, width});
  for (Index p = 0; p < positions; ++p) {
    for (Index c = 0; c < width; ++c) {
      const double rate = std::pow(10000.0, -static_cast<double>(c / 2 * 2) / static_cast<double>(width));
      const double phi = static_cast<double>(p) * rate;
      table[p * width + c] = constant<S>(c % 2 == 0 ? std::sin(phi) : std::cos(phi));
    }
  }
  return table;
}

}  // namespace

template <class S>
CausalLm<S>::CausalLm(const ModelConfig& config, bool allocate) : config_(config) {
  require_resolved(config);
  if (config.vocab_size < 1) throw ConfigError("model.vocab_size: must be 1 or more for a model, got 0");
  embedding_ = store_.add("embedding/weight", {config.vocab_size, config.d_model}, ParameterRole::table);
  if (config.position == PositionKind::learned) {
    positions_ = store_.add("positions/weight", {config.context, config.d_model}, ParameterRole::table);
  }
  for (Index layer = 0; layer < config.n_layers; ++layer) {
    blocks_.emplace_back(store_, fmt::format("blocks/{}", layer), config, layer);
  }
  final_norm_.emplace(store_, "final_norm", config.d_model, config.norm, config.bias, config.norm_eps);
  if (!config.tie_embeddings)
    head_ = store_.add("head/weight", {config.vocab_size, config.d_model}, ParameterRole::matrix);
  if (!allocate) return;
  store_.allocate();
  if (config.position == PositionKind::rope) {
    rope_table_.emplace(config.d_model / config.n_heads, config.rope_theta, config.rope_pairing);
    rope_table_->extend(config.context);
  }
  if (config.position == PositionKind::sinusoidal) sinusoids_ = sinusoid_table<S>(config.context, config.d_model);
  default_positions_.resize(config.context);
  std::iota(default_positions_.begin(), default_positions_.end(), Index{0});
}

template <class S>
void CausalLm<S>::initialise(std::uint64_t seed) {
  const FloatEnvironment environment;
  constexpr double deviation = 0.02;
  const double residual = deviation / std::sqrt(2.0 * static_cast<double>(config_.n_layers));
  std::uint32_t number = 0;
  for (const Parameter& p : store_.parameters()) {
    S* values = store_.mutable_values() + p.offset;
    const Random random(seed, Stream::initial_weights, number++);
    if (p.role == ParameterRole::gain || p.role == ParameterRole::bias) {
      std::fill(values, values + p.shape.size(), p.role == ParameterRole::gain ? S(1) : S(0));
      continue;
    }
    const double spread = p.role == ParameterRole::residual_matrix ? residual : deviation;
    parallel_ranges((p.shape.size() + 1) / 2, elementwise_tile, [&](Index begin, Index end) {
      for (Index i = begin; i < end; ++i) {
        const auto pair = random.normals(i);
        values[2 * i] = constant<S>(spread * pair[0]);
        if (2 * i + 1 < p.shape.size()) values[2 * i + 1] = constant<S>(spread * pair[1]);
      }
    });
  }
}

template <class S>
void CausalLm<S>::allocate_gradients() {
  store_.allocate_gradients();
  if (config_.tie_embeddings && !store_.second_gradient(embedding_)) store_.add_second_gradient(embedding_);
}

template <class S>
Var<S> CausalLm<S>::embed(const ForwardContext<S>& context, const TokenBatch& batch) const {
  const Index time = context.positions.time;
  Var<S> x = embedding(context.tape.parameter_second_use(context.store, embedding_), batch.tokens, {batch.batch, time});
  if (positions_ >= 0) {
    x = add(std::move(x), embedding(context.tape.parameter(context.store, positions_), context.positions, batch.batch));
  }
  if (config_.position == PositionKind::sinusoidal) {
    x = add(std::move(x), embedding(context.tape.borrow(sinusoids_.view()), context.positions, batch.batch));
  }
  return dropout(std::move(x), context.dropout_mask(embedding_dropout_site, time));
}

template <class S>
Var<S> CausalLm<S>::hidden(Tape<S>& tape, const TokenBatch& batch, const ForwardOptions<S>& options) const {
  const Index held = options.cache ? options.cache->length() : 0;
  const Index count = std::ssize(batch.tokens);
  if (batch.batch < 1 || count == 0 || count % batch.batch != 0) {
    throw ShapeError(fmt::format("model: {} tokens cannot be a batch of {} sequences", count, batch.batch));
  }
  if (options.cache && (tape.recording() || batch.batch != 1)) {
    throw ShapeError("model: a key/value cache needs a batch of one sequence, and recording off");
  }
  const Index time = count / batch.batch;
  if (options.cache) options.cache->require_fit(config_);
  const PositionsRef& at = batch.positions;
  if (at && (at.time != time || (at.batch != 1 && at.batch != batch.batch))) {
    throw ShapeError(fmt::format("model: positions ({0}) or ({1}, {0}) are needed, got ({2}, {3})", time, batch.batch,
                                 at.batch, at.time));
  }
  if (options.attention_tile < 0) {
    throw RangeError(fmt::format("model: the attention tile must be 0 or more, got {}", options.attention_tile));
  }
  if (!batch.positions && held + time > config_.context) {
    throw RangeError(fmt::format("model: {} tokens after {} exceed the context of {}", time, held, config_.context));
  }
  const ForwardContext<S> context{
      .tape = tape,
      .store = store_,
      .positions = batch.positions ? batch.positions : PositionsRef{default_positions_.data() + held, 1, time},
      .dropout = options.training ? config_.dropout : 0.0,
      .options = options};
  Var<S> x = embed(context, batch);
  for (const Block& block : blocks_) x = block.forward(context, std::move(x), rope_table_ ? &*rope_table_ : nullptr);
  if (options.cache) options.cache->advance(time);
  return final_norm_->forward(context, std::move(x));
}

template <class S>
Var<S> CausalLm<S>::head_weight(Tape<S>& tape) const {
  return tape.parameter(store_, head_ >= 0 ? head_ : embedding_);
}

template <class S>
Var<S> CausalLm<S>::logits(Tape<S>& tape, const TokenBatch& batch, const ForwardOptions<S>& options) const {
  Var<S> x = hidden(tape, batch, options);
  const typename Tape<S>::Scope scope(tape, "head");
  return linear(std::move(x), head_weight(tape), {});
}

template <class S>
Var<S> CausalLm<S>::last_logits(Tape<S>& tape, const TokenBatch& batch, const ForwardOptions<S>& options) const {
  const Var<S> x = hidden(tape, batch, options);
  const typename Tape<S>::Scope scope(tape, "head");
  return linear(x.slice(1, x.extent(1) - 1, 1), head_weight(tape), {});
}

template <class S>
Var<S> CausalLm<S>::loss(Tape<S>& tape, const TokenBatch& batch, std::span<const TokenId> targets, LossOptions loss,
                         const ForwardOptions<S>& options) const {
  loss.logits_budget_bytes = config_.logits_budget_mb << 20;
  Var<S> x = hidden(tape, batch, options);
  const typename Tape<S>::Scope scope(tape, "head");
  return linear_cross_entropy(std::move(x), head_weight(tape), targets, loss);
}

template <class S>
Index CausalLm<S>::product_elements() const {
  Index elements = config_.tie_embeddings ? store_.parameter(embedding_).shape.size() : 0;
  for (const Parameter& p : store_.parameters()) {
    if (p.role == ParameterRole::matrix || p.role == ParameterRole::residual_matrix) elements += p.shape.size();
  }
  return elements;
}

#define HANDGRAD_INSTANTIATE(S) template class CausalLm<S>;
HANDGRAD_FOR_ALL_SCALARS(HANDGRAD_INSTANTIATE)
#undef HANDGRAD_INSTANTIATE

}  // namespace handgrad
