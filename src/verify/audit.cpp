#include "handgrad/verify/audit.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <memory>
#include <mutex>

#include "handgrad/core/errors.h"
#include "handgrad/core/parallel.h"
#include "handgrad/nn/causal_lm.h"
#include "handgrad/nn/kv_cache.h"
#include "handgrad/verify/gradient_check.h"

namespace handgrad {

bool AuditReport::passed() const {
  return std::all_of(rows.begin(), rows.end(), [](const AuditRow& row) { return row.passed(); });
}

namespace {

using Complex = std::complex<double>;

constexpr double step_size = 1e-30;

struct Batch {
  std::span<const TokenId> tokens, targets;
  Index sequences;
};

// The same weights in any scalar: the float ones that training begins with.
template <class S>
CausalLm<S> model_of(const ModelConfig& config, const CausalLm<float>& source) {
  CausalLm<S> model(config);
  const float* from = source.store().values();
  std::transform(from, from + model.store().flat_size(), model.store().mutable_values(),
                 [](float x) { return static_cast<S>(x); });
  return model;
}

// In float as it trains. Else attention and the head work in three tiles at least, the last of them smaller: a sequence
// that fits one tile would leave what passes from tile to tile unproven.
template <class S>
Var<S> loss_on(const CausalLm<S>& model, Tape<S>& tape, const Batch& batch, std::uint64_t seed) {
  const Index time = static_cast<Index>(batch.tokens.size()) / batch.sequences;
  const Index tile = std::is_same_v<S, float> ? 0 : time / 3 + 1;
  return model.loss(tape, {batch.tokens, batch.sequences}, batch.targets, {.slab_rows = tile},
                    {.training = true, .seed = seed, .attention_tile = tile});
}

template <class S>
S value_at(const CausalLm<S>& model, const Batch& batch, std::uint64_t seed) {
  Tape<S> tape(false);
  return loss_on(model, tape, batch, seed).item();
}

// Adds to the store's gradients; returns the loss. `observer` may watch.
template <class S>
S add_gradients(CausalLm<S>& model, const Batch& batch, std::uint64_t seed, GraphObserver<S>* observer = nullptr) {
  Tape<S> tape;
  if (observer) tape.observe(*observer);
  const Var<S> loss = loss_on(model, tape, batch, seed);
  tape.backward(loss);
  model.store().fold_deferred();
  return loss.item();
}

// Fills the store's gradients; returns the loss.
template <class S>
S differentiate(CausalLm<S>& model, const Batch& batch, std::uint64_t seed, GraphObserver<S>* observer = nullptr) {
  model.store().allocate_gradients();
  model.store().zero_gradients();
  if (model.config().tie_embeddings) model.store().defer(model.embedding_parameter());
  return add_gradients(model, batch, seed, observer);
}

class Audit {
 public:
  Audit(const ModelConfig& config, const Batch& batch, const AuditOptions& options)
      : config_(config), batch_(batch), options_(options), weights_(config), exact_(config) {
    weights_.initialise(options.seed);
    exact_ = model_of<double>(config, weights_);
    differentiate(exact_, batch_, options_.seed);
  }

  AuditReport run() {
    entries();
    directions();
    differences();
    float_against_double();
    attention_forms();
    cache();
    threads();
    rules<double>("double", 1e-8);  // an assigned gradient is off by about 1
    rules<float>("float", 1e-2);
    return std::move(report_);
  }

 private:
  // f(i, worker's own model) for i < count, on all threads: evaluations are many and small, so each has one thread.
  template <class S, class F>
  void for_each_evaluation(const char* what, Index count, F&& f) {
    const int workers = std::max(1, thread_count());
    std::atomic<Index> next{0}, finished{0};
    std::mutex speaking;
    parallel_tiles(workers, [&](Index) {
      CausalLm<S> model = model_of<S>(config_, weights_);
      for (Index i = next++; i < count; i = next++) {
        f(i, model);
        const Index so_far = ++finished;
        const std::lock_guard lock(speaking);
        if (options_.progress) options_.progress(what, static_cast<double>(so_far) / static_cast<double>(count));
      }
    });
  }

  void entries() {
    GradientReport found;
    const ParameterStore<double>& store = exact_.store();
    found.measure(store);
    for (const Parameter& p : store.parameters()) {
      const Random draw(options_.seed, Stream::audit, static_cast<std::uint32_t>(&p - store.parameters().data()));
      const Index wanted = options_.entries > 0 ? options_.entries : p.shape.size();
      for (const Index i : detail::entries_to_check(p.shape.size(), wanted, draw)) {
        found.entries.push_back({p.name, i, store.gradients()[p.offset + i]});
      }
    }
    for_each_evaluation<Complex>("complex step", static_cast<Index>(found.entries.size()), [&](Index i, auto& model) {
      GradientEntry& entry = found.entries[static_cast<std::size_t>(i)];
      const Index at = model.store().find(entry.tensor)->offset + entry.index;
      Complex* values = model.store().mutable_values();
      const Complex x = values[at];
      values[at] = {x.real(), step_size};
      entry.complex_step = value_at(model, batch_, options_.seed).imag() / step_size;
      entry.difference = entry.value;
      values[at] = x;
    });
    found.judge();
    for (const Parameter& p : store.parameters()) {
      AuditRow row{"complex step", p.name, 0.0, 1e-10, ""};
      for (const GradientEntry& entry : found.entries) {
        if (entry.tensor != p.name) continue;
        if (raise_to(row.error, entry.complex_error) || row.where.empty()) row.where = fmt::format("[{}]", entry.index);
      }
      report_.rows.push_back(row);
    }
  }

  // The derivative along random directions over all parameters, each of unit length in every tensor.
  void directions() {
    const ParameterStore<double>& store = exact_.store();
    std::vector<double> errors(static_cast<std::size_t>(options_.directions));
    for_each_evaluation<Complex>("directions", options_.directions, [&](Index n, auto& model) {
      const Random random(options_.seed, Stream::audit, 0x10000u + static_cast<std::uint32_t>(n));
      Complex* values = model.store().mutable_values();
      double expected = 0.0, size = 0.0;
      for (const Parameter& p : store.parameters()) {
        const double length = std::sqrt(static_cast<double>(p.shape.size()));
        for (Index i = p.offset; i < p.offset + p.shape.size(); ++i) {
          const double d = random.normal(static_cast<std::uint64_t>(i)) / length;
          const double term = store.gradients()[i] * d;
          expected += term;
          size += std::abs(term);
          values[i] = {values[i].real(), step_size * d};
        }
      }
      const double found = value_at(model, batch_, options_.seed).imag() / step_size;
      errors[static_cast<std::size_t>(n)] = std::abs(found - expected) / std::max(size, 1e-300);
      for (Index i = 0; i < store.flat_size(); ++i) values[i] = values[i].real();
    });
    AuditRow row{"complex step", fmt::format("{} directions over all", options_.directions), 0.0, 1e-12, ""};
    for (std::size_t n = 0; n < errors.size(); ++n) {
      if (raise_to(row.error, errors[n])) row.where = fmt::format("direction {}", n);
    }
    report_.rows.push_back(row);
  }

  // Central differences along one direction of one tensor, in S; the relative error against the backward pass.
  template <class S>
  double difference_error(CausalLm<S>& model, const Parameter& p, double h) const {
    const Random random(options_.seed, Stream::audit, 0x20000u + static_cast<std::uint32_t>(p.offset));
    S* values = model.store().mutable_values();
    const std::vector<S> before(values + p.offset, values + p.offset + p.shape.size());
    std::vector<double> direction;
    double length = 0.0, expected = 0.0;
    for (Index i = 0; i < p.shape.size(); ++i) {
      direction.push_back(random.normal(static_cast<std::uint64_t>(i)));
      length += direction.back() * direction.back();
    }
    const auto shifted = [&](double by) {
      for (Index i = 0; i < p.shape.size(); ++i) {
        const auto at = static_cast<std::size_t>(i);
        values[p.offset + i] = static_cast<S>(static_cast<double>(before[at]) + by * direction[at]);
      }
      return static_cast<double>(value_at(model, batch_, options_.seed));
    };
    double size = 0.0;
    for (Index i = 0; i < p.shape.size(); ++i) {
      double& d = direction[static_cast<std::size_t>(i)];
      d /= std::sqrt(length);
      const double g = exact_.store().gradients()[p.offset + i];
      expected += g * d;
      size += g * g;
    }
    const double found = (shifted(h) - shifted(-h)) / (2.0 * h);
    std::copy(before.begin(), before.end(), values + p.offset);
    // Of the gradient's length over sqrt(n), what a random direction sees of it: a scale that no chance makes small. A
    // tensor whose gradient is 0 but for rounding is measured by the largest of all, as it is everywhere.
    const double seen = std::sqrt(size / static_cast<double>(p.shape.size()));
    return std::abs(found - expected) / std::max({seen, 1e-6 * largest_gradient(), 1e-300});
  }

  double largest_gradient() const {
    const ParameterStore<double>& store = exact_.store();
    double largest = 0.0;
    for (Index i = 0; i < store.flat_size(); ++i) raise_to(largest, std::abs(store.gradients()[i]));
    return largest;
  }

  void differences() {
    const auto& parameters = exact_.store().parameters();
    std::vector<AuditRow> rows(parameters.size());
    std::vector<double> in_float(parameters.size());
    const auto best_of = [&](auto& model, const Parameter& p, AuditRow& row) {
      for (int decade = 1; decade <= 9; ++decade) {
        const double h = std::pow(10.0, -decade), error = difference_error(model, p, h);
        if (row.where.empty() || error < row.error) row.error = error, row.where = fmt::format("h = 1e-{}", decade);
      }
    };
    for_each_evaluation<double>("finite differences", static_cast<Index>(parameters.size()), [&](Index i, auto& model) {
      const auto at = static_cast<std::size_t>(i);
      rows[at] = {"finite differences", parameters[at].name, 0.0, 1e-4, ""};
      best_of(model, parameters[at], rows[at]);
    });
    double worst_in_float = 0.0;
    for_each_evaluation<float>("finite differences in float", static_cast<Index>(parameters.size()),
                               [&](Index i, auto& model) {
                                 AuditRow row;
                                 best_of(model, parameters[static_cast<std::size_t>(i)], row);
                                 in_float[static_cast<std::size_t>(i)] = row.error;
                               });
    for (const double error : in_float) raise_to(worst_in_float, error);
    report_.rows.insert(report_.rows.end(), rows.begin(), rows.end());
    report_.rows.push_back(
        {"finite differences", "(in float, for comparison: no proof)", worst_in_float, HUGE_VAL, "best step"});
  }

  void float_against_double() {
    CausalLm<float> model = model_of<float>(config_, weights_);
    const double loss = static_cast<double>(differentiate(model, batch_, options_.seed));
    const double exact_loss = value_at(exact_, batch_, options_.seed);
    report_.rows.push_back(
        {"float against double", "loss", std::abs(loss - exact_loss) / std::max(exact_loss, 1e-6), 1e-6, ""});
    const double largest = largest_gradient();
    for (const Parameter& p : exact_.store().parameters()) {
      double error = 0.0, size = 0.0;
      for (Index i = p.offset; i < p.offset + p.shape.size(); ++i) {
        const double g = exact_.store().gradients()[i], d = static_cast<double>(model.store().gradients()[i]) - g;
        error += d * d;
        size += g * g;
      }
      // Ten times that of gradient_check.h: what is 0 in double may be a rounding of larger terms in float.
      const double floor = 1e-5 * largest * std::sqrt(static_cast<double>(p.shape.size()));
      report_.rows.push_back({"float against double", p.name,
                              std::sqrt(error) / std::max({std::sqrt(size), floor, 1e-300}), 2e-5, "relative L2"});
    }
  }

  void attention_forms() {
    ModelConfig other = config_;
    other.attention = config_.attention == AttentionKind::tiled ? AttentionKind::explicit_form : AttentionKind::tiled;
    CausalLm<double> model = model_of<double>(other, weights_);
    differentiate(model, batch_, options_.seed);
    double worst = 0.0, largest = 0.0;
    for (Index i = 0; i < model.store().flat_size(); ++i) {
      raise_to(worst, std::abs(model.store().gradients()[i] - exact_.store().gradients()[i]));
      largest = std::max(largest, std::abs(exact_.store().gradients()[i]));
    }
    report_.rows.push_back(
        {"paths", "explicit = tiled attention, gradients", worst / std::max(largest, 1e-300), 1e-12, ""});
  }

  void cache() {
    const Index length = static_cast<Index>(batch_.tokens.size()) / batch_.sequences;
    const auto sequence = batch_.tokens.first(static_cast<std::size_t>(length));
    Tape<float> tape(false);
    const Var<float> whole = weights_.logits(tape, {sequence});
    KvCache<float> cache(config_);
    double worst = 0.0;
    for (Index t = 0; t < length; ++t) {
      const Var<float> one =
          weights_.logits(tape, {sequence.subspan(static_cast<std::size_t>(t), 1)}, {.cache = &cache});
      for (Index v = 0; v < config_.vocab_size; ++v) {
        raise_to(worst,
                 std::abs(static_cast<double>(one.view().data[v] - whole.view().data[t * config_.vocab_size + v])));
      }
    }
    report_.rows.push_back({"paths", "cached = uncached logits", worst, 1e-5, ""});
  }

  void threads() {
    std::vector<float> first;
    double different = 0.0;
    for (const int count : {1, 2, 3, 7}) {
      const ThreadScope scope(count);
      CausalLm<float> model = model_of<float>(config_, weights_);
      differentiate(model, batch_, options_.seed);
      const float* gradients = model.store().gradients();
      if (first.empty()) first.assign(gradients, gradients + model.store().flat_size());
      if (std::memcmp(first.data(), gradients, first.size() * sizeof(float)) != 0) different += 1.0;
    }
    report_.rows.push_back({"paths", "bits for 1, 2, 3 and 7 threads", different, 0.0, ""});
  }

  // What no derivative shows: gradients are added to the existing ones, and what is only read keeps its bits.
  template <class S>
  void rules(const char* scalar, double limit) {
    CausalLm<S> model = model_of<S>(config_, weights_);
    OperandWatch<S> watch(model.store());
    differentiate(model, batch_, options_.seed, &watch);
    AuditRow kept{"rules", fmt::format("operands keep their bits, {}", scalar), 0.0, 0.0, ""};
    for (const std::string& violation : watch.violations()) {
      kept.error += 1.0;
      if (kept.where.empty()) kept.where = violation;
    }
    report_.rows.push_back(kept);
    const AddedGradient<S> proof(model.store(), options_.seed);
    add_gradients(model, batch_, options_.seed);
    AuditRow added{"rules", fmt::format("gradients are added, {}", scalar), 0.0, limit, ""};
    for (const auto& row : proof.compare()) {
      if (raise_to(added.error, row.error)) added.where = fmt::format("{}[{}]", row.tensor, row.index);
    }
    report_.rows.push_back(added);
  }

  ModelConfig config_;
  Batch batch_;
  AuditOptions options_;
  CausalLm<float> weights_;
  CausalLm<double> exact_;
  AuditReport report_;
};

}  // namespace

AuditReport audit_model(const ModelConfig& config, std::span<const TokenId> tokens, std::span<const TokenId> targets,
                        Index batch, const AuditOptions& options) {
  if (batch < 1 || tokens.empty() || tokens.size() % static_cast<std::size_t>(batch) != 0 ||
      targets.size() != tokens.size()) {
    throw ShapeError(
        fmt::format("audit: a batch of whole sequences with a target a token is needed, got {} sequences, {} "
                    "tokens and {} targets",
                    batch, tokens.size(), targets.size()));
  }
  if (options.entries < 0 || options.directions < 0) {
    throw RangeError(fmt::format("audit: entries and directions must be 0 or more, got {} and {}", options.entries,
                                 options.directions));
  }
  return Audit(config, {tokens, targets, batch}, options).run();
}

}  // namespace handgrad
