#include "handgrad/train/memory.h"

#include <fmt/format.h>

#include <algorithm>

#include "handgrad/core/errors.h"
#include "handgrad/core/memory.h"
#include "handgrad/nn/causal_lm.h"

namespace handgrad {
namespace {

constexpr Index float_bytes = 4;
constexpr Index most_bytes = 1'000'000'000'000'000;  // far above any memory; sums of a few stay within 64 bits
constexpr Index program_bytes = 32'000'000;          // libraries, code, stacks of a few threads: measured

// a b, at most most_bytes.
Index product(Index a, Index b) {
  Index result = 0;
  return __builtin_mul_overflow(a, b, &result) || result > most_bytes ? most_bytes : result;
}

// Values per token and layer that are stored for the backward pass.
Index kept_per_layer(const ModelConfig& m) {
  const Index head = m.d_model / m.n_heads, qkv = (m.n_heads + 2 * m.n_kv_heads) * head;
  const Index rotated = m.position == PositionKind::rope ? (m.n_heads + m.n_kv_heads) * head : 0;
  const Index normalised = m.qk_norm ? (m.n_heads + m.n_kv_heads) * head : 0;
  const Index ff = m.feed_forward == FeedForwardKind::swiglu ? 3 * m.d_ff : 2 * m.d_ff;
  const Index dropped = m.dropout > 0 ? 2 * m.d_model : 0;
  const Index scores = m.attention == AttentionKind::explicit_form ? 2 * m.n_heads * m.context : 0;
  return 5 * m.d_model + qkv + rotated + normalised + ff + dropped + scores;
}

// Values per token that are held temporarily: gradients of activations, or the activations of an evaluation.
Index transient_per_token(const ModelConfig& m) {
  const Index head = m.d_model / m.n_heads, qkv = (m.n_heads + 2 * m.n_kv_heads) * head;
  return 4 * m.d_model + 2 * m.d_ff + qkv;
}

}  // namespace

Index MemoryEstimate::peak() const { return program + tokens + std::max(text, to_come()); }

MemoryEstimate estimate_memory(const Config& resolved, Index text_bytes, Index tokens) {
  if (text_bytes < 0 || tokens < 0) {
    throw RangeError(fmt::format("memory: bytes and tokens must be 0 or more, got {} and {}", text_bytes, tokens));
  }
  const ModelConfig& m = resolved.model;
  const Index parameters = CausalLm<float>::count_parameters(m);
  const Index batch = resolved.train.batch_size * m.context;
  const Index moments = resolved.optimizer.name == OptimizerKind::adamw ? 2 : 1;
  const Index watched = resolved.log.health_every > 0 ? 1 : 0;
  const Index slab = product(std::min<Index>(batch, 512) * float_bytes, m.vocab_size);
  const Index logits = std::min(product(batch * float_bytes, m.vocab_size), std::max(m.logits_budget_mb << 20, slab));
  MemoryEstimate estimate;
  estimate.program = program_bytes;
  estimate.text = std::min(text_bytes, most_bytes);
  estimate.tokens = product(tokens, float_bytes);
  estimate.states = product((2 + moments + watched) * float_bytes, parameters);
  // The pool keeps buffers of several sizes; some are not reused.
  const Index passing = transient_per_token(m) + 2 * m.d_model + m.d_ff;
  estimate.activations = product(batch * float_bytes, product(m.n_layers, kept_per_layer(m)) + passing) + logits;
  estimate.evaluation = product(batch * float_bytes, transient_per_token(m));
  estimate.checkpoint = product((1 + moments) * float_bytes, parameters);
  return estimate;
}

void check_memory(const MemoryEstimate& estimate, const Config& resolved, Index to_be_freed) {
  const Index by_batch = estimate.activations + estimate.evaluation, by_weights = estimate.states + estimate.checkpoint;
  const bool explicit_form = resolved.model.attention == AttentionKind::explicit_form;
  const std::string help =
      by_batch > by_weights
          ? fmt::format(
                "smaller train.batch_size with train.accumulation raised to match, or model.context{} (a "
                "micro-batch of {} x {} tokens takes {})",
                explicit_form ? ", or model.attention=tiled" : "", resolved.train.batch_size, resolved.model.context,
                megabytes(by_batch))
          : fmt::format(
                "smaller model.d_model, model.n_layers or model.vocab_size (weights, moments and checkpoint "
                "take {})",
                megabytes(by_weights));
  require_memory(estimate.to_come() - to_be_freed, help);
}

Index estimate_audit_memory(const ModelConfig& model) {
  constexpr Index bytes_per_parameter = 64;  // measured
  return program_bytes + product(bytes_per_parameter, CausalLm<float>::count_parameters(model));
}

void require_memory(Index needed, const std::string& help) {
  const Index available = available_memory_bytes();
  if (needed <= available) return;
  throw ResourceError(fmt::format("memory: about {} more are needed, {} are free; use {}", megabytes(needed),
                                  megabytes(available), help),
                      static_cast<std::uint64_t>(needed));
}

void check_memory_for_text(Index text_bytes) {
  const Index needed = product(1 + float_bytes, text_bytes), available = available_memory_bytes();
  if (needed <= available) return;
  throw ResourceError(fmt::format("memory: reading a text of {} needs up to {}, {} are free", megabytes(text_bytes),
                                  megabytes(needed), megabytes(available)),
                      static_cast<std::uint64_t>(needed));
}

std::string megabytes(Index bytes) { return fmt::format("{} MB", bytes / 1'000'000 + (bytes % 1'000'000 > 0 ? 1 : 0)); }

}  // namespace handgrad
