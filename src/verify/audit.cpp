#include "handgrad/verify/audit.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>

#include "handgrad/core/errors.h"
#include "handgrad/core/random.h"
#include "handgrad/nn/causal_lm.h"
#include "handgrad/nn/kv_cache.h"
#include "handgrad/verify/added_gradient.h"
#include "handgrad/verify/gradient_check.h"
#include "verify/draws.h"

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

// The loss of a model on a batch, with the dropout masks of the first step. In every scalar the weights have the values
// of the initial float weights.
template <class S>
class ModelLoss final : public verify::Subject<S> {
 public:
  ModelLoss(const ModelConfig& config, const CausalLm<float>& weights, const Batch& batch, std::uint64_t seed)
      : model_(config), batch_(batch), seed_(seed) {
    const float* from = weights.store().values();
    std::transform(from, from + model_.store().flat_size(), model_.store().mutable_values(),
                   [](float x) { return static_cast<S>(x); });
  }
  ParameterStore<S>& store() override { return model_.store(); }
  // In float the tiles are those of training. Else there are at least three tiles of attention and of the head, the
  // last one smaller, so that the code between tiles is proven.
  Var<S> value(Tape<S>& tape) override {
    if (tape.recording()) model_.allocate_gradients();
    const Index time = std::ssize(batch_.tokens) / batch_.sequences;
    const Index tile = std::is_same_v<S, float> ? 0 : time / 3 + 1;
    return model_.loss(tape, {batch_.tokens, batch_.sequences}, batch_.targets, {.slab_rows = tile},
                       {.training = true, .seed = seed_, .attention_tile = tile});
  }

 private:
  CausalLm<S> model_;
  Batch batch_;
  std::uint64_t seed_;
};

class Audit {
 public:
  Audit(const ModelConfig& config, const Batch& batch, const AuditOptions& options)
      : config_(config), batch_(batch), options_(options), weights_(config) {
    weights_.initialise(options.seed);
    exact_ = subject_of<double>(config_);
    exact_loss_ = verify::add_gradient(*exact_);
    largest_ = verify::largest_gradient(exact_->store());
  }

  AuditReport run() {
    check_entries();
    check_directions();
    check_differences();
    compare_float_with_double();
    compare_attention_forms();
    compare_cached_logits();
    compare_thread_counts();
    check_rules<double>("double", 1e-8);  // an assigned gradient is off by about 1
    check_rules<float>("float", 1e-2);
    return std::move(report_);
  }

 private:
  template <class S>
  std::unique_ptr<verify::Subject<S>> subject_of(const ModelConfig& config) const {
    return std::make_unique<ModelLoss<S>>(config, weights_, batch_, options_.seed);
  }
  template <class S>
  verify::SubjectFactory<S> factory() const {
    return [this] { return subject_of<S>(config_); };
  }
  std::function<void(double)> progress(const char* what) const {
    if (!options_.progress) return {};
    return [this, what](double share) { options_.progress(what, share); };
  }
  // There are many small evaluations; each runs on one thread.
  template <class S, class F>
  void for_each(const char* what, Index count, F f) {
    verify::for_each_evaluation<S>(factory<S>(), thread_count(), count, f, progress(what));
  }
  void add_row(const char* section, std::string name, double error, double limit, std::string where = "") {
    report_.rows.push_back({section, std::move(name), error, limit, std::move(where)});
  }

  void check_entries() {
    const GradientReport found = check_gradients(
        {factory<double>(), factory<Complex>()},
        {.entries = options_.entries > 0 ? options_.entries : std::max<Index>(1, exact_->store().flat_size()),
         .differences = false,
         .seed = options_.seed,
         .workers = thread_count(),
         .progress = progress("complex step")});
    for (const Parameter& p : exact_->store().parameters()) {
      AuditRow row{"complex step", p.name, 0.0, model_tolerances.complex_step, ""};
      for (const GradientEntry& entry : found.entries) {
        if (entry.tensor != p.name) continue;
        if (verify::keep_worst(row.error, entry.complex_error) || row.where.empty()) {
          row.where = fmt::format("[{}]", entry.index);
        }
      }
      report_.rows.push_back(row);
    }
  }

  // The derivative along random directions over all parameters, each of unit length in every tensor.
  void check_directions() {
    const ParameterStore<double>& store = exact_->store();
    std::vector<double> errors(options_.directions);
    for_each<Complex>("directions", options_.directions, [&](Index n, verify::Subject<Complex>& subject) {
      const Random random(options_.seed, Stream::audit, verify::draw_number(verify::Draw::direction, n));
      Complex* values = subject.store().mutable_values();
      double expected = 0.0, size = 0.0;
      for (const Parameter& p : store.parameters()) {
        const double length = std::sqrt(static_cast<double>(p.shape.size()));
        for (Index i = p.offset; i < p.offset + p.shape.size(); ++i) {
          const double d = random.normal(i) / length;
          const double term = store.gradients()[i] * d;
          expected += term;
          size += std::abs(term);
          values[i] = {values[i].real(), step_size * d};
        }
      }
      const double found = evaluate(subject)[0].imag() / step_size;
      errors[n] = std::abs(found - expected) / std::max(size, 1e-300);
      for (Index i = 0; i < store.flat_size(); ++i) values[i] = values[i].real();
    });
    AuditRow row{"complex step", fmt::format("{} directions over all", options_.directions), 0.0, 1e-12, ""};
    for (std::size_t n = 0; n < errors.size(); ++n) {
      if (verify::keep_worst(row.error, errors[n])) row.where = fmt::format("direction {}", n);
    }
    report_.rows.push_back(row);
  }

  // The relative error of the backward pass against central differences along one direction of one tensor, in S.
  template <class S>
  double difference_error(verify::Subject<S>& subject, const Parameter& p, double h) const {
    const Random random(options_.seed, Stream::audit, verify::draw_number(verify::Draw::tensor_direction, p.offset));
    const Index n = p.shape.size();
    const double* gradient = exact_->store().gradients() + p.offset;
    S* values = subject.store().mutable_values() + p.offset;
    const std::vector<S> before(values, values + n);
    std::vector<double> direction;
    double length = 0.0, expected = 0.0, size = 0.0;
    for (Index i = 0; i < n; ++i) {
      direction.push_back(random.normal(i));
      length += direction.back() * direction.back();
    }
    for (Index i = 0; i < n; ++i) {
      direction[i] /= std::sqrt(length);
      expected += gradient[i] * direction[i];
      size += gradient[i] * gradient[i];
    }
    const auto shifted = [&](double by) {
      for (Index i = 0; i < n; ++i) values[i] = static_cast<S>(static_cast<double>(before[i]) + by * direction[i]);
      return static_cast<double>(evaluate(subject)[0]);
    };
    const double found = (shifted(h) - shifted(-h)) / (2.0 * h);
    std::copy(before.begin(), before.end(), values);
    // The error is relative to the expected size of the derivative in a random direction, |gradient| / sqrt(n), since
    // the derivative itself may be small by chance.
    const double seen = std::sqrt(size / static_cast<double>(n));
    return std::abs(found - expected) / std::max({seen, small_share * largest_, 1e-300});
  }

  // The smallest error over the steps 1e-1 to 1e-9.
  template <class S>
  AuditRow best_difference(verify::Subject<S>& subject, const Parameter& p) const {
    AuditRow row{"finite differences", p.name, 0.0, 1e-4, ""};
    for (int decade = 1; decade <= 9; ++decade) {
      const double error = difference_error(subject, p, std::pow(10.0, -decade));
      if (row.where.empty() || error < row.error) row.error = error, row.where = fmt::format("h = 1e-{}", decade);
    }
    return row;
  }

  void check_differences() {
    const auto& parameters = exact_->store().parameters();
    std::vector<AuditRow> rows(parameters.size());
    for_each<double>("finite differences", std::ssize(rows), [&](Index i, verify::Subject<double>& subject) {
      rows[i] = best_difference(subject, parameters[i]);
    });
    std::vector<double> in_float(parameters.size());
    for_each<float>("finite differences in float", std::ssize(rows), [&](Index i, verify::Subject<float>& subject) {
      in_float[i] = best_difference(subject, parameters[i]).error;
    });
    report_.rows.insert(report_.rows.end(), rows.begin(), rows.end());
    double worst_in_float = 0.0;
    for (const double error : in_float) verify::keep_worst(worst_in_float, error);
    add_row("finite differences", "(in float, for comparison: no proof)", worst_in_float, HUGE_VAL, "best step");
  }

  void compare_float_with_double() {
    const auto subject = subject_of<float>(config_);
    const double loss = verify::add_gradient(*subject);
    add_row("float against double", "loss", std::abs(loss - exact_loss_) / std::max(exact_loss_, 1e-6), 1e-6);
    for (const auto& [tensor, error] : verify::float_gradient_errors(subject->store(), exact_->store())) {
      add_row("float against double", tensor, error, model_tolerances.in_float, "relative L2");
    }
  }

  void compare_attention_forms() {
    ModelConfig other = config_;
    other.attention = config_.attention == AttentionKind::tiled ? AttentionKind::explicit_form : AttentionKind::tiled;
    const auto subject = subject_of<double>(other);
    verify::add_gradient(*subject);
    double worst = 0.0;
    for (Index i = 0; i < subject->store().flat_size(); ++i) {
      verify::keep_worst(worst, std::abs(subject->store().gradients()[i] - exact_->store().gradients()[i]));
    }
    add_row("paths", "explicit = tiled attention, gradients", worst / std::max(largest_, 1e-300), 1e-12);
  }

  void compare_cached_logits() {
    const Index length = std::ssize(batch_.tokens) / batch_.sequences;
    Tape<float> tape(false);
    const Var<float> whole = weights_.logits(tape, {batch_.tokens.subspan(0, length)});
    KvCache<float> cache(config_);
    double worst = 0.0;
    for (Index t = 0; t < length; ++t) {
      const Var<float> one = weights_.logits(tape, {batch_.tokens.subspan(t, 1)}, {.cache = &cache});
      const float *cached = one.view().data, *uncached = whole.view().data + t * config_.vocab_size;
      for (Index v = 0; v < config_.vocab_size; ++v) {
        verify::keep_worst(worst, std::abs(static_cast<double>(cached[v] - uncached[v])));
      }
    }
    add_row("paths", "cached = uncached logits", worst, 1e-5);
  }

  void compare_thread_counts() {
    std::vector<float> first;
    double different = 0.0;
    for (const int count : {1, 2, 3, 7}) {
      const ThreadScope scope(count);
      const auto subject = subject_of<float>(config_);
      verify::add_gradient(*subject);
      const float* gradients = subject->store().gradients();
      if (first.empty()) first.assign(gradients, gradients + subject->store().flat_size());
      if (std::memcmp(first.data(), gradients, first.size() * sizeof(float)) != 0) different += 1.0;
    }
    add_row("paths", "bits for 1, 2, 3 and 7 threads", different, 0.0);
  }

  // The rules that derivatives do not prove: gradients are added to the existing ones, and operands keep their bits.
  template <class S>
  void check_rules(const char* scalar, double limit) {
    const auto subject = subject_of<S>(config_);
    const std::vector<std::string> changed = verify::watched_gradient(*subject);
    add_row("rules", fmt::format("operands keep their bits, {}", scalar), static_cast<double>(changed.size()), 0.0,
            changed.empty() ? "" : changed.front());
    const verify::AddedGradient<S> proof(subject->store(), options_.seed);
    verify::add_gradient(*subject);
    AuditRow added{"rules", fmt::format("gradients are added, {}", scalar), 0.0, limit, ""};
    for (const auto& row : proof.compare()) {
      if (verify::keep_worst(added.error, row.error)) added.where = fmt::format("{}[{}]", row.tensor, row.index);
    }
    report_.rows.push_back(added);
  }

  ModelConfig config_;
  Batch batch_;
  AuditOptions options_;
  CausalLm<float> weights_;
  std::unique_ptr<verify::Subject<double>> exact_;
  double exact_loss_ = 0.0, largest_ = 0.0;
  AuditReport report_;
};

}  // namespace

AuditReport audit_model(const ModelConfig& config, std::span<const TokenId> tokens, std::span<const TokenId> targets,
                        Index batch, const AuditOptions& options) {
  if (batch < 1 || tokens.empty() || tokens.size() % batch != 0 || targets.size() != tokens.size()) {
    throw ShapeError(
        fmt::format("audit: a batch of whole sequences with one target per token is needed, got {} sequences, {} "
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
