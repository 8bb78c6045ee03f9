#pragma once

#include <string>
#include <vector>

#include "handgrad/core/choices.h"
#include "handgrad/core/types.h"

namespace handgrad {

enum class NormKind { rms, layer };
enum class FeedForwardKind { swiglu, gelu, gelu_tanh, relu_squared };
enum class PositionKind { rope, learned, sinusoidal, none };
enum class AttentionKind { tiled, explicit_form };
enum class OptimizerKind { adamw, sgd };
enum class NonFinitePolicy { stop, skip };
enum class TokenizerKind { byte, character };

// Each member of these structs is a key of a config file, under the same name. The default is stated here; range, help
// and resume class are in the table of fields.cpp.

struct DataConfig {
  std::vector<std::string> files;             ///< Text files or folders of text files.
  std::vector<std::string> validation_files;  ///< A separate text for validation; empty: a fraction of `files`.
  double validation_fraction = 0.1;           ///< Share of the tokens used for validation, at the end of the text.
  DataOrder order = DataOrder::epoch;
};

struct TokenizerConfig {
  TokenizerKind kind = TokenizerKind::character;
};

struct ModelConfig {
  Index n_layers = 4;
  Index n_heads = 4;
  Index n_kv_heads = 0;  ///< 0: n_heads.
  Index d_model = 128;
  Index d_ff = 0;  ///< 0: 4 d_model, or for swiglu 8/3 d_model rounded up to a multiple of 32.
  Index context = 64;
  Index vocab_size = 0;  ///< 0: that of the tokenizer.
  bool tie_embeddings = true;
  NormKind norm = NormKind::rms;
  double norm_eps = 1e-5;
  FeedForwardKind feed_forward = FeedForwardKind::swiglu;
  PositionKind position = PositionKind::rope;
  bool bias = false;
  double dropout = 0.0;
  bool qk_norm = false;
  AttentionKind attention = AttentionKind::tiled;
  double rope_theta = 10000.0;
  RopePairing rope_pairing = RopePairing::adjacent;
  Index logits_budget_mb = 64;
};

struct TrainConfig {
  Index steps = 1000;
  Index batch_size = 16;
  Index accumulation = 1;
  Index seed = 1;
  NonFinitePolicy on_nonfinite = NonFinitePolicy::stop;
};

struct OptimizerConfig {
  OptimizerKind name = OptimizerKind::adamw;
  double lr = 1e-3;
  double min_lr = 1e-4;
  double beta1 = 0.9;
  double beta2 = 0.99;
  double eps = 1e-8;
  double momentum = 0.9;  ///< sgd only.
  double weight_decay = 0.1;
  double grad_clip = 1.0;  ///< Largest global norm; 0: no clipping.
};

struct ScheduleConfig {
  ScheduleKind kind = ScheduleKind::cosine;
  Index warmup_steps = 100;
  Index decay_steps = 0;  ///< warmup_stable_decay: steps of the final decay; 0: a fifth of train.steps.
};

struct EvalConfig {
  Index every = 250;
  Index batches = 20;
  Index patience = 0;  ///< Stop after this number of evaluations without a new best; 0: never.
};

struct CheckpointConfig {
  Index every = 250;
  Index keep = 2;
};

struct LogConfig {
  Index every = 10;
  Index health_every = 0;  ///< Steps between logs of the health of every layer; 0: never.
};

struct SampleConfig {
  Index every = 0;  ///< Steps between samples of text; 0: never.
  Index tokens = 120;
  std::string prompt = "\n";
  double temperature = 0.8;
};

struct Config {
  DataConfig data;
  TokenizerConfig tokenizer;
  ModelConfig model;
  TrainConfig train;
  OptimizerConfig optimizer;
  ScheduleConfig schedule;
  EvalConfig eval;
  CheckpointConfig checkpoint;
  LogConfig log;
  SampleConfig sample;
};

}  // namespace handgrad
