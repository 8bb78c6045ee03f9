#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "command.h"
#include "config_path.h"
#include "handgrad/config/parse.h"
#include "handgrad/config/validate.h"
#include "handgrad/core/gemm.h"
#include "handgrad/core/tensor.h"
#include "handgrad/train/memory.h"
#include "handgrad/train/update.h"
#include "json.h"
#include "numbers.h"

namespace handgrad::cli {
namespace {

using Clock = std::chrono::steady_clock;

double milliseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t n = values.size();
  return n % 2 == 1 ? values[n / 2] : 0.5 * (values[n / 2 - 1] + values[n / 2]);
}

// Rows, columns and inner dimension of matrix products. The best rate among them is the peak for comparison.
constexpr Index peak_shapes[][3] = {{2048, 384, 768}, {2048, 1536, 384}, {1024, 1024, 1024}, {512, 3072, 768}};

double gemm_peak_gflops() {
  double best = 0.0;
  for (const auto& [rows, cols, inner] : peak_shapes) {
    Tensor<float> a(Shape{rows, inner}), b(Shape{inner, cols}), c(Shape{rows, cols});
    a.fill(0.5f);
    b.fill(0.25f);
    for (int i = 0; i < 6; ++i) {
      const auto start = Clock::now();
      gemm::multiply_tiled<float>({a.rows()}, {b.rows()}, 1.0f, gemm::Store::assign, c.rows(), {});
      const double flops = 2.0 * static_cast<double>(rows) * static_cast<double>(cols) * static_cast<double>(inner);
      best = std::max(best, flops / milliseconds_since(start) / 1e6);
    }
  }
  return best;
}

// Training steps on random tokens, with the model and the optimiser of the config.
class Stepper {
 public:
  explicit Stepper(const Config& config)
      : config_(config),
        model_(config.model),
        tokens_(static_cast<std::size_t>(config.train.batch_size * config.model.context)),
        update_(config, model_) {
    model_.initialise(static_cast<std::uint64_t>(config.train.seed));
  }

  // Returns the time of one step in milliseconds, without the time to draw its tokens.
  double step() {
    std::vector<std::vector<TokenId>> inputs, targets;
    for (Index a = 0; a < config_.train.accumulation; ++a) {
      inputs.push_back(random_tokens());
      targets.push_back(random_tokens());
    }
    const auto start = Clock::now();
    update_.make_gradients(model_, [&](Index i) { return MicroBatch{inputs[i], targets[i], drawn_}; });
    update_.apply(model_, config_.optimizer.lr, update_.norm(model_));
    return milliseconds_since(start);
  }

  const CausalLm<float>& model() const { return model_; }

 private:
  std::vector<TokenId> random_tokens() {
    const Random random(static_cast<std::uint64_t>(config_.train.seed), Stream::benchmark,
                        static_cast<std::uint32_t>(drawn_++));
    std::vector<TokenId> tokens(tokens_);
    for (std::size_t i = 0; i < tokens_; ++i) {
      tokens[i] = static_cast<TokenId>(random.below(i, static_cast<std::uint64_t>(config_.model.vocab_size)));
    }
    return tokens;
  }

  Config config_;
  CausalLm<float> model_;
  std::size_t tokens_;
  Update<float> update_;
  std::uint64_t drawn_ = 0;
};

// Floating-point operations of a step: 6 per product element and token, and 6 L B H D T (T + 1) for attention, since
// half of the scores are masked.
double step_flops(const Config& config, Index product_elements) {
  const ModelConfig& m = config.model;
  const double tokens = static_cast<double>(config.train.batch_size * config.train.accumulation * m.context);
  return 6.0 * static_cast<double>(product_elements) * tokens +
         6.0 * static_cast<double>(m.n_layers * m.d_model) * tokens * static_cast<double>(m.context + 1);
}

Json measure(const Config& config, Index steps, int threads) {
  constexpr Index warm_up = 2;
  Stepper stepper(config);
  std::vector<double> times;
  for (Index i = 0; i < steps; ++i) {
    const double ms = stepper.step();
    if (i >= warm_up) times.push_back(ms);
  }
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const double middle = median(times);
  const double tokens = static_cast<double>(config.train.batch_size * config.train.accumulation * config.model.context);
  const auto rounded = [](double x, double unit) { return std::round(x / unit) * unit; };
  return {{"median_step_ms", rounded(middle, 1e-3)},
          {"min_step_ms", rounded(*std::min_element(times.begin(), times.end()), 1e-3)},
          {"tokens_per_s", std::round(tokens / middle * 1e3)},
          {"gflops", rounded(step_flops(config, stepper.model().product_elements()) / middle / 1e6, 1e-2)},
          {"gemm_peak_gflops", rounded(gemm_peak_gflops(), 1e-2)},
          {"peak_rss_mb", std::round(static_cast<double>(usage.ru_maxrss) / 1024.0)},
          {"parameters", stepper.model().store().scalar_count()},
          {"threads", threads},
          {"gemm", gemm::kernel_name()},
          {"steps", steps}};
}

void print_result(const Json& result, int threads) {
  fmt::print("{} parameters, {}, {}: median step {:.2f} ms (minimum {:.2f}), {:.0f} tokens/s\n",
             result["parameters"].get<Index>(), counted(threads, "thread"), gemm::kernel_name(),
             result["median_step_ms"].get<double>(), result["min_step_ms"].get<double>(),
             result["tokens_per_s"].get<double>());
  fmt::print("{:.1f} GFLOP/s; the best product alone (of", result["gflops"].get<double>());
  for (const auto& [rows, cols, inner] : peak_shapes) fmt::print(" {}x{}x{}", rows, cols, inner);
  fmt::print(") {:.1f}; peak memory {:.0f} MB\n", result["gemm_peak_gflops"].get<double>(),
             result["peak_rss_mb"].get<double>());
}

Config read_config(const Values& values) {
  const std::string path =
      config_path(values.required("config", "bench: a CONFIG is needed; see handgrad bench --help"));
  const Config config = load_config(path, values.list("set")).config;
  validate(config, path);
  if (config.model.vocab_size != 0) return resolve(config);
  throw ConfigError(
      fmt::format("{}: model.vocab_size: bench has no tokenizer, so it must be given, for example --set "
                  "model.vocab_size=256",
                  path));
}

}  // namespace

int run_bench(const Arguments& arguments) {
  Options options("bench",
                  "Times training steps (zeroing, forward, backward, norm, optimiser) on random tokens. The first two "
                  "steps are not counted.",
                  "CONFIG|RUN");
  options.value("steps", "N", "Steps, 3 or more, including the two that are not counted", "20");
  options.set().json().positional({"config"});
  const Values values = options.parse(arguments);
  if (values.help()) return done;
  check_json(values);
  const Index steps = read_integer("--steps", values.text("steps"), 3, 1'000'000);
  const Config config = read_config(values);
  const int threads = wanted_threads(values);
  const ThreadScope scope(threads);
  check_memory(estimate_memory(config, 0, 0), config);
  const Json result = measure(config, steps, threads);
  if (!prints_json(values)) print_result(result, threads);
  write_json(values, result);
  return done;
}

}  // namespace handgrad::cli
