#include "handgrad/train/evaluate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "core/float_environment.h"
#include "handgrad/core/errors.h"
#include "handgrad/text/windows.h"

namespace handgrad {
namespace {

struct Totals {
  LossSum loss;
  Index bytes = 0;

  Evaluation result(bool complete = true) const {
    const double bits = loss.sum / std::numbers::ln2;
    return {loss.mean(), bytes > 0 ? bits / static_cast<double>(bytes) : 0.0, loss.targets, complete};
  }
};

void add_batch(const CausalLm<float>& model, const Tokenizer& tokenizer, const TokenBatch& batch,
               std::span<const TokenId> targets, Tape<float>& tape, Totals& totals) {
  tape.reset();
  model.loss(tape, batch, targets, {.report = &totals.loss});
  totals.bytes += tokenizer.size_bytes(targets);
}

// Returns false if the watch has ended the evaluation.
bool add_windows(const CausalLm<float>& model, const Tokenizer& tokenizer, std::span<const TokenId> tokens,
                 std::span<const Index> starts, Index batch_size, Tape<float>& tape, Totals& totals,
                 const EvaluationWatch& watch) {
  const Index context = model.config().context, count = std::ssize(starts);
  if (batch_size < 1) throw RangeError(fmt::format("evaluation: the batch must be 1 or more, got {}", batch_size));
  for (Index first = 0; first < count; first += batch_size) {
    const Index batch = std::min(batch_size, count - first);
    std::vector<TokenId> inputs(batch * context), targets(inputs.size());
    fill_windows(tokens, starts.subspan(first, batch), context, inputs, targets);
    add_batch(model, tokenizer, {inputs, batch}, targets, tape, totals);
    if (watch && !watch(first + batch, count)) return false;
  }
  return true;
}

}  // namespace

double Evaluation::perplexity() const { return std::exp(loss); }

Evaluation evaluate_windows(const CausalLm<float>& model, const Tokenizer& tokenizer, std::span<const TokenId> tokens,
                            std::span<const Index> starts, Index batch_size, Tape<float>& tape,
                            const EvaluationWatch& watch) {
  const FloatEnvironment environment;
  Totals totals;
  const bool complete = add_windows(model, tokenizer, tokens, starts, batch_size, tape, totals, watch);
  return totals.result(complete);
}

Evaluation evaluate_all(const CausalLm<float>& model, const Tokenizer& tokenizer, std::span<const TokenId> tokens,
                        Index batch_size, const EvaluationWatch& watch) {
  const Index count = std::ssize(tokens), context = model.config().context;
  if (count < 2) throw DataError(fmt::format("evaluation: the text must have at least two tokens, got {}", count));
  const FloatEnvironment environment;
  Tape<float> tape(false);
  Totals totals;
  std::vector<Index> starts;
  for (Index start = 0; start + context < count; start += context) starts.push_back(start);
  if (!add_windows(model, tokenizer, tokens, starts, batch_size, tape, totals, watch)) return totals.result(false);
  const auto rest = tokens.subspan(starts.size() * context);
  if (rest.size() > 1) {
    add_batch(model, tokenizer, {rest.first(rest.size() - 1)}, rest.subspan(1), tape, totals);
  }
  return totals.result();
}

}  // namespace handgrad
