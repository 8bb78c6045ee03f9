#include "handgrad/config/fields.h"

#include <algorithm>

#include "config/field_builders.h"

namespace handgrad::config {
namespace {

using Drafts = std::vector<FieldDraft>;

constexpr Index million = 1'000'000;
constexpr Index most_steps = 1000 * million;

void add_data(Drafts& drafts) {
  TableBuilder t(drafts, "data", &Config::data, ResumeClass::same);
  t.paths("files", &DataConfig::files,
          "Text files, and folders of .txt, .md and .text files, to train on; joined in order without separators. "
          "They may be moved; a resumed run requires the same text.")
      .on_resume(ResumeClass::free)  // a resumed run compares the content of the files, not their paths
      .aliases({"dataset", "path", "train_files", "input"});
  t.paths("validation_files", &DataConfig::validation_files,
          "Text for validation; if empty, the last part of `files` is used.")
      .on_resume(ResumeClass::free)
      .aliases({"val_files", "eval_files"});
  t.real("validation_fraction", &DataConfig::validation_fraction, between(0, 1),
         "Share of the tokens of `files` used for validation, if validation_files is empty.")
      .aliases({"val_fraction", "val_split"});
  t.choice("order", &DataConfig::order, {{DataOrder::epoch, "epoch"}, {DataOrder::random, "random"}},
           "epoch: every window once per epoch; random: windows at random positions.")
      .aliases({"shuffle"});
}

void add_tokenizer(Drafts& drafts) {
  TableBuilder t(drafts, "tokenizer", &Config::tokenizer, ResumeClass::same);
  t.choice("kind", &TokenizerConfig::kind, {{TokenizerKind::byte, "byte"}, {TokenizerKind::character, "char"}},
           "byte: one token per byte (256); char: one token per Unicode code point of the training text.")
      .aliases({"type"});
}

void add_model_shape(TableBuilder<ModelConfig>& t) {
  t.integer("n_layers", &ModelConfig::n_layers, {1, 1024}, "Blocks of attention and feed-forward.")
      .aliases({"n_layer", "num_layers", "num_hidden_layers", "depth"});
  t.integer("n_heads", &ModelConfig::n_heads, {1, 1024}, "Attention heads per block; must divide d_model.")
      .aliases({"n_head", "num_heads", "num_attention_heads"});
  t.integer("n_kv_heads", &ModelConfig::n_kv_heads, {0, 1024},
            "Heads of keys and values, each shared by n_heads / n_kv_heads query heads; 0: n_heads.")
      .aliases({"n_kv_head", "num_key_value_heads"});
  t.integer("d_model", &ModelConfig::d_model, {1, 65536}, "Width of the model.")
      .aliases({"n_embd", "dim", "hidden_size", "embedding_size", "width"});
  t.integer("d_ff", &ModelConfig::d_ff, {0, 1048576},
            "Width of the feed-forward layer; 0: 4 d_model, for swiglu 8/3 d_model rounded up to a multiple of 32.")
      .aliases({"intermediate_size", "ffn_dim", "hidden_dim"});
  t.integer("context", &ModelConfig::context, {1, 1048576}, "Length of a sequence in tokens.")
      .aliases({"block_size", "context_length", "seq_len", "max_seq_len", "n_ctx"});
  t.integer("vocab_size", &ModelConfig::vocab_size, {0, 16777216},
            "Size of the vocabulary; 0: that of the tokenizer. Required without a tokenizer, for example in bench.")
      .aliases({"n_vocab"});
}

void add_model_options(TableBuilder<ModelConfig>& t) {
  t.boolean("tie_embeddings", &ModelConfig::tie_embeddings, "Use the token embedding also as the output layer.")
      .aliases({"tie_word_embeddings", "weight_tying", "tied"});
  t.choice("norm", &ModelConfig::norm, {{NormKind::rms, "rms"}, {NormKind::layer, "layer"}},
           "Normalisation before each sublayer and at the end.");
  t.real("norm_eps", &ModelConfig::norm_eps, above(0, 1), "Added to the variance in a norm.")
      .aliases({"rms_norm_eps", "layer_norm_eps"});
  t.choice("feed_forward", &ModelConfig::feed_forward,
           {{FeedForwardKind::swiglu, "swiglu"},
            {FeedForwardKind::gelu, "gelu"},
            {FeedForwardKind::gelu_tanh, "gelu_tanh"},
            {FeedForwardKind::relu_squared, "relu_squared"}},
           "Non-linearity of the feed-forward layer; gelu is exact, gelu_tanh its approximation by tanh.")
      .aliases({"activation", "hidden_act", "mlp"});
  t.choice("position", &ModelConfig::position,
           {{PositionKind::rope, "rope"},
            {PositionKind::learned, "learned"},
            {PositionKind::sinusoidal, "sinusoidal"},
            {PositionKind::none, "none"}},
           "Encoding of the positions of tokens.")
      .aliases({"position_embedding_type", "pos_emb"});
  t.boolean("bias", &ModelConfig::bias, "Biases in linear layers and layer norms.");
  t.real("dropout", &ModelConfig::dropout, below(0, 1), "Share of activations set to zero in training.");
  t.boolean("qk_norm", &ModelConfig::qk_norm, "RMS-normalise queries and keys, head by head.");
  t.choice("attention", &ModelConfig::attention,
           {{AttentionKind::tiled, "tiled"}, {AttentionKind::explicit_form, "explicit"}},
           "tiled: does not store the matrix of scores; explicit: the plain formula, for comparison.");
  t.real("rope_theta", &ModelConfig::rope_theta, closed(1, 1e12), "Base of the wavelengths of RoPE.")
      .aliases({"theta", "rope_base"});
  t.choice("rope_pairing", &ModelConfig::rope_pairing,
           {{RopePairing::adjacent, "adjacent"}, {RopePairing::half, "half"}},
           "Pairs of features that RoPE rotates: adjacent ones, or those half a head apart.")
      .aliases({"rope_interleaved"});
  t.integer(
      "logits_budget_mb", &ModelConfig::logits_budget_mb, {0, 1048576},
      "Logits are stored for the backward pass if they fit in this many MiB, else recomputed; the result is the same.");
}

void add_train(Drafts& drafts) {
  TableBuilder t(drafts, "train", &Config::train, ResumeClass::same);
  t.integer("steps", &TrainConfig::steps, {1, most_steps}, "Number of updates.")
      .on_resume(ResumeClass::steps)
      .aliases({"max_iters", "max_steps", "iterations", "num_steps"});
  t.integer("batch_size", &TrainConfig::batch_size, {1, 65536}, "Sequences per micro-batch.")
      .on_resume(ResumeClass::global_batch)
      .aliases({"micro_batch_size"});
  t.integer("accumulation", &TrainConfig::accumulation, {1, 65536}, "Micro-batches per update.")
      .on_resume(ResumeClass::global_batch)
      .aliases({"gradient_accumulation_steps", "grad_accum"});
  t.integer("seed", &TrainConfig::seed, {0, INT64_MAX}, "Seed of initial weights, dropout and data order.")
      .aliases({"random_seed"});
  t.choice(
       "on_nonfinite", &TrainConfig::on_nonfinite, {{NonFinitePolicy::stop, "stop"}, {NonFinitePolicy::skip, "skip"}},
       "If a loss or gradient is not finite: stop, or skip the update; 3 consecutive skips, or 10 in total, also stop.")
      .on_resume(ResumeClass::free);
}

void add_optimizer(Drafts& drafts) {
  TableBuilder t(drafts, "optimizer", &Config::optimizer, ResumeClass::free);
  t.choice("name", &OptimizerConfig::name, {{OptimizerKind::adamw, "adamw"}, {OptimizerKind::sgd, "sgd"}},
           "adamw, or sgd with momentum.")
      .on_resume(ResumeClass::same)
      .aliases({"kind", "optimizer"});
  t.real("lr", &OptimizerConfig::lr, closed(0, 1e9), "Peak learning rate.").aliases({"learning_rate", "max_lr"});
  t.real("min_lr", &OptimizerConfig::min_lr, closed(0, 1e9), "Final learning rate of a schedule (not of constant).")
      .aliases({"final_lr"});
  t.real("beta1", &OptimizerConfig::beta1, below(0, 1), "adamw: decay of the mean of gradients.");
  t.real("beta2", &OptimizerConfig::beta2, below(0, 1), "adamw: decay of the mean of squared gradients.");
  t.real("eps", &OptimizerConfig::eps, above(0, 1), "adamw: added to the root in the denominator.")
      .aliases({"epsilon"});
  t.real("momentum", &OptimizerConfig::momentum, below(0, 1), "sgd: decay of the momentum.");
  t.real("weight_decay", &OptimizerConfig::weight_decay, closed(0, 100),
         "Decay of weights; not applied to gains and biases.");
  t.real("grad_clip", &OptimizerConfig::grad_clip, closed(0, 1e9),
         "Largest global norm of the gradients; larger ones are scaled down. 0: no clipping.")
      .aliases({"clip", "max_grad_norm"});
}

void add_schedule(Drafts& drafts) {
  TableBuilder t(drafts, "schedule", &Config::schedule, ResumeClass::free);
  t.choice("kind", &ScheduleConfig::kind,
           {{ScheduleKind::constant, "constant"},
            {ScheduleKind::linear, "linear"},
            {ScheduleKind::cosine, "cosine"},
            {ScheduleKind::warmup_stable_decay, "warmup_stable_decay"}},
           "Learning rate after the warmup.")
      .aliases({"lr_schedule", "scheduler"});
  t.integer("warmup_steps", &ScheduleConfig::warmup_steps, {0, most_steps},
            "Updates in which the rate rises from 0 to lr; with train.steps or more, it rises until the end.")
      .aliases({"warmup", "warmup_iters"});
  t.integer("decay_steps", &ScheduleConfig::decay_steps, {0, most_steps},
            "warmup_stable_decay: updates of the final decay; 0: a fifth of train.steps.")
      .aliases({"lr_decay_iters"});
}

void add_intervals(Drafts& drafts) {
  TableBuilder eval(drafts, "eval", &Config::eval, ResumeClass::free);
  eval.integer("every", &EvalConfig::every, {1, most_steps},
               "Updates between evaluations; there is also one after the last update.")
      .aliases({"eval_interval", "interval"});
  eval.integer(
          "batches", &EvalConfig::batches, {1, million},
          "Size of an evaluation, in updates of batch_size x accumulation windows; the windows are always the same.")
      .aliases({"eval_iters"});
  eval.integer("patience", &EvalConfig::patience, {0, million},
               "Stop after this number of evaluations without a new best; 0: never.")
      .aliases({"early_stopping"});
  TableBuilder checkpoint(drafts, "checkpoint", &Config::checkpoint, ResumeClass::free);
  checkpoint
      .integer("every", &CheckpointConfig::every, {1, most_steps},
               "Updates between checkpoints; there is also one after the last update.")
      .aliases({"save_interval", "save_every"});
  checkpoint.integer("keep", &CheckpointConfig::keep, {1, million},
                     "Number of checkpoints to keep, in addition to the best one.");
  TableBuilder log(drafts, "log", &Config::log, ResumeClass::free);
  log.integer("every", &LogConfig::every, {1, most_steps}, "Updates between logs of the training loss.")
      .aliases({"log_interval"});
  log.integer("health_every", &LogConfig::health_every, {0, most_steps},
              "Updates between logs of the health of each layer (gradient norm, update ratio, attention, dead units); "
              "0: never.")
      .since(2);
  TableBuilder sample(drafts, "sample", &Config::sample, ResumeClass::free);
  sample.integer("every", &SampleConfig::every, {0, most_steps},
                 "Updates between samples of generated text; 0: never.");
  sample.integer("tokens", &SampleConfig::tokens, {1, million}, "Tokens per sample.").aliases({"max_new_tokens"});
  sample.string("prompt", &SampleConfig::prompt, "The text to continue.");
  sample.real("temperature", &SampleConfig::temperature, closed(0, 100),
              "Logits are divided by it. 0: always the most likely token.");
}

std::vector<Field> make_fields() {
  Drafts drafts;
  add_data(drafts);
  add_tokenizer(drafts);
  TableBuilder model(drafts, "model", &Config::model, ResumeClass::same);
  add_model_shape(model);
  add_model_options(model);
  add_train(drafts);
  add_optimizer(drafts);
  add_schedule(drafts);
  add_intervals(drafts);
  std::vector<Field> table;
  for (FieldDraft& draft : drafts) table.push_back(std::move(draft.field));
  return table;
}

}  // namespace

const std::vector<Field>& fields() {
  static const std::vector<Field> table = make_fields();
  return table;
}

const Field* find_field(std::string_view key) {
  const auto& table = fields();
  const auto found = std::find_if(table.begin(), table.end(), [&](const Field& field) { return field.key == key; });
  return found == table.end() ? nullptr : &*found;
}

void set_older_values(const std::vector<Field>& table, int format, const std::set<std::string>& given, Config& config) {
  for (const Field& field : table) {
    if (field.since > format && field.value_in_older_files && !given.contains(field.key))
      field.set(config, *field.value_in_older_files);
  }
}

}  // namespace handgrad::config
