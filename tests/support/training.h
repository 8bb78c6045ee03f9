#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "handgrad/config/config.h"
#include "handgrad/core/parallel.h"
#include "handgrad/train/trainer.h"

namespace handgrad::test {

/// Models this small are tested on one thread, except in tests of threads.
class OneThread : public ::testing::Test {
  ThreadScope one_{1};
};

/// Words in an order that a small model can partly learn; the same text for the same length.
inline std::string sample_text(std::size_t bytes) {
  static const char* const words[] = {"the ", "fox ", "saw ", "a ", "hen ", "and ", "ran ", "home.\n"};
  std::string text;
  for (std::uint32_t i = 1; text.size() < bytes; ++i) text += words[(i * 2654435761u >> 13) % 8];
  text.resize(bytes);
  return text;
}

/// One small layer, a char tokenizer, and intervals that take no effect unless a test sets them.
inline Config tiny_config() {
  Config config;
  config.model.n_layers = 1, config.model.n_heads = 2, config.model.d_model = 16, config.model.d_ff = 24;
  config.model.context = 8;
  config.train.steps = 12, config.train.batch_size = 4;
  config.schedule.warmup_steps = 3;
  config.eval.every = 4, config.eval.batches = 2;
  config.checkpoint.every = 4;
  config.log.every = 1;
  return config;
}

inline void make_gpt(ModelConfig& m) {
  m.norm = NormKind::layer, m.feed_forward = FeedForwardKind::gelu, m.position = PositionKind::learned, m.bias = true;
}

inline void make_llama(ModelConfig& m) { m.n_heads = 4, m.n_kv_heads = 2, m.qk_norm = true; }

inline DataSource tiny_source(const Config& config, std::size_t bytes = 180) {
  return DataSource::from_text(config, sample_text(bytes));
}

inline std::string bytes_of(const float* values, Index count) {
  return {reinterpret_cast<const char*>(values), static_cast<std::size_t>(count) * sizeof(float)};
}

inline std::string weights_of(const Trainer& trainer) {
  return bytes_of(trainer.model().store().values(), trainer.model().store().flat_size());
}

/// Weights and moments. Equal if and only if two trainers have the same bits.
inline std::string state_of(Trainer& trainer) {
  std::string state = weights_of(trainer);
  for (std::size_t i = 0; i < trainer.optimizer().state_names().size(); ++i) {
    state += bytes_of(trainer.optimizer().state(i).data(), trainer.model().store().flat_size());
  }
  return state + std::to_string(trainer.optimizer().updates());
}

/// The logged values of a step, without times.
struct Logged {
  Index step;
  double loss, lr, grad_norm;
  Index tokens;
  bool operator==(const Logged&) const = default;
};

inline Logged logged(const StepReport& r) { return {r.step, r.loss, r.lr, r.grad_norm, r.tokens}; }

inline std::vector<Logged> train_to(Trainer& trainer, Index step) {
  std::vector<Logged> rows;
  while (trainer.loop().step < step) rows.push_back(logged(trainer.step()));
  return rows;
}

}  // namespace handgrad::test
