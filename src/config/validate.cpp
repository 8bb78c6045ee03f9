#include "handgrad/config/validate.h"

#include <fmt/format.h>

#include "config/values.h"
#include "handgrad/config/fields.h"
#include "handgrad/core/errors.h"

namespace handgrad {
namespace {

// So that steps x tokens, the tokens that a run reads, cannot leave 64 bits.
constexpr Index most_tokens_an_update = Index{1} << 31;

[[noreturn]] void refuse(std::string_view source, const std::string& rule) {
  const std::string opening = source.empty() ? "" : fmt::format("{}: ", source);
  throw ConfigError(one_line(opening + rule));
}

void check_ranges(const Config& config, std::string_view source) {
  for (const Field& field : fields()) {
    const FieldValue value = field.get(config);
    if (!accepts(field, value)) {
      refuse(source, fmt::format("{}: expected {}, got {}", field.key, expected(field), to_toml(value)));
    }
  }
}

void check_heads(const ModelConfig& m, std::string_view source) {
  if (m.d_model % m.n_heads != 0) {
    refuse(source, fmt::format("model.n_heads {} does not divide model.d_model {}: {} are left over", m.n_heads,
                               m.d_model, m.d_model % m.n_heads));
  }
  if (m.n_kv_heads > m.n_heads) {
    refuse(source, fmt::format("model.n_kv_heads {} is more than model.n_heads {}", m.n_kv_heads, m.n_heads));
  }
  if (m.n_kv_heads > 0 && m.n_heads % m.n_kv_heads != 0) {
    refuse(source,
           fmt::format("model.n_kv_heads {} does not divide model.n_heads {}: query heads share key heads evenly",
                       m.n_kv_heads, m.n_heads));
  }
}

void check_positions(const ModelConfig& m, std::string_view source) {
  const Index head_width = m.d_model / m.n_heads;
  if (m.position == PositionKind::rope && head_width % 2 != 0) {
    refuse(source,
           fmt::format("model.position \"rope\" turns pairs of features, but a head is {} wide: model.d_model {} / "
                       "model.n_heads {}",
                       head_width, m.d_model, m.n_heads));
  }
  if (m.position == PositionKind::sinusoidal && m.d_model % 2 != 0) {
    refuse(source,
           fmt::format("model.position \"sinusoidal\" fills pairs of features, but model.d_model is {}", m.d_model));
  }
}

}  // namespace

void validate(const Config& config, std::string_view source) {
  check_ranges(config, source);
  check_heads(config.model, source);
  check_positions(config.model, source);

  const OptimizerConfig& o = config.optimizer;
  // A schedule that never falls does not look at min_lr.
  if (config.schedule.kind != ScheduleKind::constant && o.min_lr > o.lr) {
    refuse(source,
           fmt::format("optimizer.min_lr {} is more than optimizer.lr {}, from which the rate falls", o.min_lr, o.lr));
  }
  const TrainConfig& t = config.train;
  // At most 2^52, by the ranges of the three.
  const Index tokens = t.batch_size * t.accumulation * config.model.context;
  if (tokens > most_tokens_an_update) {
    refuse(source, fmt::format("train.batch_size {} x train.accumulation {} x model.context {} is {} tokens an update, "
                               "at most {} are allowed",
                               t.batch_size, t.accumulation, config.model.context, tokens, most_tokens_an_update));
  }
}

Config resolve(Config config) {
  ModelConfig& m = config.model;
  if (m.n_kv_heads == 0) m.n_kv_heads = m.n_heads;
  if (m.d_ff == 0) {
    // Three matrices of swiglu at 8/3 cost what two cost at 4.
    m.d_ff = m.feed_forward == FeedForwardKind::swiglu ? (8 * m.d_model + 95) / 96 * 32 : 4 * m.d_model;
  }
  return config;
}

}  // namespace handgrad
