#include "handgrad/verify/audit.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <numeric>

#include "command.h"
#include "config_path.h"
#include "handgrad/config/parse.h"
#include "handgrad/config/validate.h"
#include "handgrad/core/random.h"
#include "handgrad/text/windows.h"
#include "handgrad/train/memory.h"
#include "handgrad/train/trainer.h"
#include "json.h"
#include "numbers.h"
#include "terminal.h"

namespace handgrad::cli {
namespace {

// The model and the batch to prove it on.
struct Material {
  ModelConfig model;
  std::vector<TokenId> tokens, targets;
  Index length = 0;
};

constexpr Index random_vocabulary = 64;

// The first windows of the training text, or random tokens.
Material material_of(const Config& config, bool random, Index sequences, Index length) {
  Material m;
  m.length = std::min(length, config.model.context);
  const auto count = static_cast<std::size_t>(sequences * m.length);
  m.tokens.resize(count);
  m.targets.resize(count);
  if (random) {
    Config resolved = resolve(config);
    if (resolved.model.vocab_size == 0) resolved.model.vocab_size = random_vocabulary;
    m.model = resolved.model;
    const Random draw(static_cast<std::uint64_t>(config.train.seed), Stream::audit);
    for (std::size_t i = 0; i < count; ++i) {
      m.tokens[i] = static_cast<TokenId>(draw.below(2 * i, static_cast<std::uint64_t>(m.model.vocab_size)));
      m.targets[i] = static_cast<TokenId>(draw.below(2 * i + 1, static_cast<std::uint64_t>(m.model.vocab_size)));
    }
    return m;
  }
  if (config.data.files.empty()) {
    throw ConfigError("data.files: the config names no text; --random draws random tokens instead");
  }
  const DataSource source = DataSource::load(config);
  m.model = complete_config(config, source.tokenizer().name(), source.tokenizer().vocab_size()).model;
  TokenWindows(source.train(), m.length, DataOrder::epoch, static_cast<std::uint64_t>(config.train.seed))
      .fill(0, m.tokens, m.targets);
  return m;
}

class ProgressLine {
 public:
  explicit ProgressLine(bool quiet) : on_(!quiet && draws_over_lines(STDERR_FILENO)) {}
  ~ProgressLine() {
    if (on_) fmt::print(stderr, "\r\033[K");
  }
  void show(const std::string& what, double share) {
    if (!on_ || (share < 1.0 && std::chrono::steady_clock::now() - shown_ < std::chrono::milliseconds(100))) return;
    shown_ = std::chrono::steady_clock::now();
    fmt::print(stderr, "\r{} {:.0f} %\033[K", what, 100.0 * share);
  }

 private:
  bool on_;
  std::chrono::steady_clock::time_point shown_{};
};

// A row without a limit is for comparison only.
bool is_check(const AuditRow& row) { return !std::isinf(row.limit); }

void print_table(const AuditReport& report) {
  fmt::print("  {:<38} {:>9}  of {:>5}  {:<13}\n", "", "worst", "limit", "where");
  std::string section;
  for (const AuditRow& row : report.rows) {
    if (row.section != section) fmt::print("\n{}\n", section = row.section);
    const std::string limit = !is_check(row) ? "-" : fmt::format("{:.0e}", row.limit);
    fmt::print("  {:<38} {:>9.2e}  of {:>5}  {:<13} {}\n", row.name, row.error, limit, row.where,
               !is_check(row) ? ""
               : row.passed() ? "ok"
                              : "FAILED");
  }
}

Json json_of(const AuditReport& report, double seconds) {
  Json rows = Json::array();
  for (const AuditRow& row : report.rows) {
    Json limit = is_check(row) ? Json(row.limit) : Json();
    Json error = std::isfinite(row.error) ? Json(row.error) : Json(std::isnan(row.error) ? "nan" : "inf");
    rows.push_back({{"section", row.section},
                    {"name", row.name},
                    {"error", error},
                    {"limit", limit},
                    {"where", row.where},
                    {"passed", is_check(row) ? Json(row.passed()) : Json()}});
  }
  return {{"passed", report.passed()}, {"seconds", std::round(seconds * 10) / 10}, {"rows", rows}};
}

// The arguments of `audit`.
struct Request {
  std::string path;
  Config config;
  Index length = 0, sequences = 0;
  bool random = false;
  AuditOptions audit;
};

Request read_request(const Values& values) {
  Request request;
  request.path = config_path(values.required("config", "audit: a CONFIG is needed; see handgrad audit --help"));
  const std::string entries = values.text("entries");
  const bool all = entries == "all";
  request.audit.entries = all ? 0 : read_integer("--entries (a number, or all)", entries, 1, 999'999'999);
  request.length = read_integer("--tokens", values.text("tokens"), 1, 65536);
  request.sequences = read_integer("--sequences", values.text("sequences"), 1, 1024);
  request.config = load_config(request.path, values.list("set")).config;
  validate(request.config, request.path);
  request.random = values.given("random");
  request.audit.seed = static_cast<std::uint64_t>(request.config.train.seed);
  return request;
}

void print_material(const Request& request, const Material& m, Index memory) {
  const std::string part = m.length < m.model.context ? fmt::format(" (of a context of {})", m.model.context) : "";
  fmt::print("{}: {} of {} {} token{}{}, vocabulary {}, about {} of memory\n", request.path,
             counted(request.sequences, "sequence"), m.length, request.random ? "random" : "training",
             m.length == 1 ? "" : "s", part, m.model.vocab_size, megabytes(memory));
  std::fflush(stdout);
}

AuditReport prove(const Material& m, Request request, bool quiet) {
  AuditReport report;
  {
    ProgressLine line(quiet);
    request.audit.progress = [&](const std::string& what, double share) { line.show(what, share); };
    report = audit_model(m.model, m.tokens, m.targets, request.sequences, request.audit);
  }
  const AuditReport stability = audit_stability();
  report.rows.insert(report.rows.end(), stability.rows.begin(), stability.rows.end());
  return report;
}

void print_verdict(const AuditReport& report, double seconds) {
  const auto count = [&](auto is) { return std::count_if(report.rows.begin(), report.rows.end(), is); };
  fmt::print("\n{}: {} of {} checks hold, in {:.0f} s\n", report.passed() ? "proven" : "NOT PROVEN",
             count([](const AuditRow& r) { return is_check(r) && r.passed(); }), count(is_check), seconds);
}

}  // namespace

int run_audit(const Arguments& arguments) {
  Options options(
      "audit",
      "Proves the gradients of the model that a config trains: exit code 0 if all checks hold, 1 if not. It "
      "takes some 20 seconds for a million parameters; the time grows with layers, entries and tokens. "
      "--entries 4 --tokens 16 is quick.",
      "CONFIG|RUN");
  options.value("entries", "N|all", "Entries of each parameter tensor, or all", "16");
  options.flag("random", "Random tokens instead of the config's text");
  options.value("tokens", "N", "Tokens of a sequence, at most", "64");
  options.value("sequences", "N", "Sequences", "2");
  options.set().json().positional({"config"});
  const Values values = options.parse(arguments);
  if (values.help()) return done;
  check_json(values);
  const Request request = read_request(values);
  const ThreadScope scope(wanted_threads(values));
  const auto start = std::chrono::steady_clock::now();
  const Material material = material_of(request.config, request.random, request.sequences, request.length);
  const Index memory = estimate_audit_memory(material.model);
  require_memory(memory, "smaller model.d_model, model.n_layers or model.vocab_size");
  const bool prints_table = !values.quiet() && !prints_json(values);
  if (prints_table) print_material(request, material, memory);
  const AuditReport report = prove(material, request, values.quiet());
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (prints_table) print_table(report);
  if (!prints_json(values)) print_verdict(report, seconds);
  write_json(values, json_of(report, seconds));
  return report.passed() ? done : check_failed;
}

}  // namespace handgrad::cli
