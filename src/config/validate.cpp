#include "handgrad/config/validate.h"

#include <fmt/format.h>

#include "config/values.h"
#include "handgrad/config/fields.h"
#include "handgrad/core/errors.h"

namespace handgrad {
namespace {

// With this limit the number of tokens of a run, steps x tokens, fits in 64 bits.
constexpr Index most_tokens_an_update = Index{1} << 31;

// Collects the rules that a config violates.
class Rules {
 public:
  explicit Rules(std::string_view source) : opening_(source.empty() ? "" : fmt::format("{}: ", source)) {}
  void broken(const std::string& rule) { texts_.push_back(config::one_line(opening_ + rule)); }
  bool all_hold() const { return texts_.empty(); }
  std::vector<std::string> take() { return std::move(texts_); }

 private:
  std::string opening_;
  std::vector<std::string> texts_;
};

void check_ranges(const Config& config, Rules& rules) {
  for (const config::Field& field : config::fields()) {
    const config::FieldValue value = field.get(config);
    if (!config::accepts(field, value)) {
      rules.broken(fmt::format("{}: expected {}, got {}", field.key, config::expected(field), config::to_toml(value)));
    }
  }
}

void check_heads(const ModelConfig& m, Rules& rules) {
  if (m.d_model % m.n_heads != 0) {
    rules.broken(fmt::format("model.n_heads {} must divide model.d_model {}: the remainder is {}", m.n_heads, m.d_model,
                             m.d_model % m.n_heads));
  }
  if (m.n_kv_heads > m.n_heads) {
    rules.broken(fmt::format("model.n_kv_heads {} is more than model.n_heads {}", m.n_kv_heads, m.n_heads));
  }
  if (m.n_kv_heads > 0 && m.n_heads % m.n_kv_heads != 0) {
    rules.broken(fmt::format(
        "model.n_kv_heads {} does not divide model.n_heads {}: every key head needs the same number of query heads",
        m.n_kv_heads, m.n_heads));
  }
}

void check_positions(const ModelConfig& m, Rules& rules) {
  const Index head_width = m.d_model / m.n_heads;
  if (m.position == PositionKind::rope && head_width % 2 != 0) {
    rules.broken(
        fmt::format("model.position \"rope\" needs an even head width, got {}: model.d_model {} / "
                    "model.n_heads {}",
                    head_width, m.d_model, m.n_heads));
  }
  if (m.position == PositionKind::sinusoidal && m.d_model % 2 != 0) {
    rules.broken(fmt::format("model.position \"sinusoidal\" needs an even model.d_model, got {}", m.d_model));
  }
}

}  // namespace

std::vector<std::string> broken_rules(const Config& config, std::string_view source) {
  Rules rules(source);
  check_ranges(config, rules);
  if (!rules.all_hold()) return rules.take();  // the products below may overflow for values out of range
  check_heads(config.model, rules);
  check_positions(config.model, rules);

  const OptimizerConfig& o = config.optimizer;
  // A constant schedule does not use min_lr.
  if (config.schedule.kind != ScheduleKind::constant && o.min_lr > o.lr) {
    rules.broken(
        fmt::format("optimizer.min_lr {} is above optimizer.lr {}; a tenth of it is usual: optimizer.min_lr={:.3g}",
                    o.min_lr, o.lr, o.lr / 10));
  }
  const TrainConfig& t = config.train;
  // At most 2^52 for values in range.
  const Index tokens = t.batch_size * t.accumulation * config.model.context;
  if (tokens > most_tokens_an_update) {
    rules.broken(fmt::format(
        "train.batch_size {} x train.accumulation {} x model.context {} is {} tokens per update; the limit is {}",
        t.batch_size, t.accumulation, config.model.context, tokens, most_tokens_an_update));
  }
  return rules.take();
}

void validate(const Config& config, std::string_view source) {
  const std::vector<std::string> broken = broken_rules(config, source);
  if (!broken.empty()) throw ConfigError(broken.front());
}

Config resolve(Config config) {
  ModelConfig& m = config.model;
  if (m.n_kv_heads == 0) m.n_kv_heads = m.n_heads;
  if (m.d_ff == 0) {
    // The three matrices of swiglu have as many elements at 8/3 as two matrices have at 4.
    m.d_ff = m.feed_forward == FeedForwardKind::swiglu ? (8 * m.d_model + 95) / 96 * 32 : 4 * m.d_model;
  }
  return config;
}

Config complete_config(Config config, std::string_view tokenizer, Index vocab_size) {
  if (config.model.vocab_size != 0 && config.model.vocab_size != vocab_size) {
    throw ConfigError(fmt::format("model.vocab_size: the {} tokenizer has {} tokens, got {}; leave the key out",
                                  tokenizer, vocab_size, config.model.vocab_size));
  }
  config.model.vocab_size = vocab_size;
  validate(config);
  return resolve(std::move(config));
}

}  // namespace handgrad
