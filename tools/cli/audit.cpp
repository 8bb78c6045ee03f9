#include "handgrad/verify/audit.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>

#include "command.h"
#include "config_path.h"
#include "handgrad/config/parse.h"
#include "handgrad/config/validate.h"
#include "handgrad/core/random.h"
#include "handgrad/text/windows.h"
#include "handgrad/train/memory.h"
#include "handgrad/train/trainer.h"
#include "numbers.h"
#include "terminal.h"

namespace handgrad::cli {
namespace {

using Json = nlohmann::ordered_json;

struct Material {
  ModelConfig model;
  std::vector<TokenId> tokens, targets;
  Index length = 0;
};

constexpr Index random_vocabulary = 64;

// Two sequences: the first windows of the training text, or random tokens.
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
    throw ConfigError("data.files: the config names no text to take tokens from; --random draws them instead");
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

// A row without a limit is there for comparison.
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

}  // namespace

int run_audit(const Arguments& arguments) {
  cxxopts::Options options = make_options(
      "audit",
      "Proves the gradients of the very model that a config trains: exit code 0 if they hold, 1 if not. Takes some 20 "
      "seconds for a million parameters; the time grows with layers, entries and tokens: --entries 4 --tokens 16 is "
      "quick.",
      "CONFIG|RUN");
  options.add_options()("entries", "Entries of each parameter tensor, or all",
                        cxxopts::value<std::string>()->default_value("16"),
                        "N|all")("random", "Random tokens instead of the config's text")(
      "tokens", "Tokens of a sequence, at most", cxxopts::value<std::string>()->default_value("64"), "N")(
      "sequences", "Sequences", cxxopts::value<std::string>()->default_value("2"), "N")(
      "set", "Set a key of the config; may be repeated", cxxopts::value<std::vector<std::string>>(), "KEY=VALUE")(
      "json", "Print one JSON object, or write it to FILE", cxxopts::value<std::string>()->implicit_value(""), "FILE")(
      "config", "", cxxopts::value<std::string>());
  options.parse_positional({"config"});
  const Parsed parsed = parse(options, "audit", arguments);
  if (parsed.help) return done;
  check_json(parsed.values);
  const std::string path =
      config_path(required_argument(parsed.values, "config", "audit: a CONFIG is needed; see handgrad audit --help"));
  std::vector<std::string> overrides;
  if (parsed.values.count("set") > 0) overrides = parsed.values["set"].as<std::vector<std::string>>();
  AuditOptions audit;
  const std::string entries = parsed.values["entries"].as<std::string>();
  audit.entries = entries == "all" ? 0 : read_integer("--entries (a number, or all)", entries, 1, 999'999'999);
  const Index length = read_integer("--tokens", parsed.values["tokens"].as<std::string>(), 1, 65536);
  const Index sequences = read_integer("--sequences", parsed.values["sequences"].as<std::string>(), 1, 1024);
  const ParsedConfig config = load_config(path, overrides);
  validate(config.config, path);
  const ThreadScope scope(wanted_threads(parsed.values));
  const bool quiet = parsed.values.count("quiet") > 0,
             json_only = parsed.values.count("json") > 0 && parsed.values["json"].as<std::string>().empty();
  const auto start = std::chrono::steady_clock::now();
  const Material m = material_of(config.config, parsed.values.count("random") > 0, sequences, length);
  const Index memory = estimate_audit_memory(m.model);
  require_memory(memory, "smaller model.d_model, model.n_layers or model.vocab_size");
  audit.seed = static_cast<std::uint64_t>(config.config.train.seed);
  if (!quiet && !json_only) {
    const std::string part = m.length < m.model.context ? fmt::format(" (of a context of {})", m.model.context) : "";
    fmt::print("{}: {} of {} {} token{}{}, vocabulary {}, about {} of memory\n", path, counted(sequences, "sequence"),
               m.length, parsed.values.count("random") > 0 ? "random" : "training", m.length == 1 ? "" : "s", part,
               m.model.vocab_size, megabytes(memory));
    std::fflush(stdout);
  }
  AuditReport report;
  {
    ProgressLine line(quiet);
    audit.progress = [&](const std::string& what, double share) { line.show(what, share); };
    report = audit_model(m.model, m.tokens, m.targets, sequences, audit);
  }
  const AuditReport stability = audit_stability();
  report.rows.insert(report.rows.end(), stability.rows.begin(), stability.rows.end());
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (!json_only) {
    if (!quiet) print_table(report);
    const auto count = [&](auto is) { return std::count_if(report.rows.begin(), report.rows.end(), is); };
    fmt::print("\n{}: {} of {} checks hold, in {:.0f} s\n", report.passed() ? "proven" : "NOT PROVEN",
               count([](const AuditRow& r) { return is_check(r) && r.passed(); }), count(is_check), seconds);
  }
  if (parsed.values.count("json") > 0)
    write_json(parsed.values, json_of(report, seconds).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  return report.passed() ? done : check_failed;
}

}  // namespace handgrad::cli
