#include "train/metrics_log.h"

#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/math.h"
#include "handgrad/core/errors.h"
#include "handgrad/files/appender.h"
#include "handgrad/files/durable_write.h"
#include "handgrad/files/read_file.h"

namespace handgrad {
namespace {

using Json = nlohmann::ordered_json;

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// JSON has no NaN and no infinity; they are written as strings.
Json number(double x) {
  if (is_finite(x)) return x;
  return std::isnan(x) ? "nan" : x > 0 ? "inf" : "-inf";
}

double to_milliseconds(double seconds) { return std::round(seconds * 1000.0) / 1000.0; }

bool is_row(const Json& row) { return row.is_object() && row.contains("step") && row["step"].is_number_integer(); }

// Does a row describe work that the resumed run repeats?
bool is_obsolete(const Json& row, const LoopState& loop) {
  const Index step = row["step"].get<Index>();
  if (step != loop.step) return step > loop.step;
  return loop.evaluation_pending && row.contains("split") && row["split"] == "val";
}

struct KeptRows {
  std::string text;
  double elapsed_s = 0.0;
};

KeptRows kept_rows(const std::string& text, const LoopState& loop) {
  KeptRows kept;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = std::string_view(text).substr(begin, end - begin);
    const Json row = Json::parse(line, nullptr, false);
    const bool torn = end == text.size() && row.is_discarded() && line.starts_with('{');
    if (!torn && !(is_row(row) && is_obsolete(row, loop))) {
      kept.text.append(line) += '\n';
      if (is_row(row) && row.contains("elapsed_s") && row["elapsed_s"].is_number()) {
        kept.elapsed_s = row["elapsed_s"].get<double>();
      }
    }
    begin = end + 1;
  }
  return kept;
}

}  // namespace

MetricsLog::MetricsLog(FileSystem* fs, const std::string& path, const LoopState& loop)
    : tokens_(loop.tokens), started_(Clock::now()), logged_(started_) {
  std::error_code error;
  KeptRows kept;
  std::string before;
  if (std::filesystem::exists(path, error)) {
    // Opening a pipe would block until it has a writer.
    if (!std::filesystem::is_regular_file(path, error)) {
      throw DataError(fmt::format("cannot read {}: is not a regular file", path));
    }
    before = files::read_file(path);
  }
  kept = kept_rows(before, loop);
  elapsed_before_s_ = kept.elapsed_s;
  // Truncating needs no space on the disk. If the kept rows are not a prefix, the file is replaced atomically.
  const bool prefix = before.starts_with(kept.text);
  if (!prefix) files::write_durably(fs, path, kept.text);
  file_ = std::make_unique<files::Appender>(fs, path);
  if (prefix && file_->size_bytes() > std::ssize(kept.text)) {
    file_->truncate(std::ssize(kept.text));
  }
}

void MetricsLog::note(const StepReport& report) {
  if (std::exchange(warm_, true)) return;
  logged_ = Clock::now();
  tokens_ = report.tokens;
}

void MetricsLog::add(const StepReport& report) {
  const double seconds = seconds_since(logged_);
  const double rate = seconds > 0 ? static_cast<double>(report.tokens - tokens_) / seconds : 0.0;
  logged_ = Clock::now();
  tokens_ = report.tokens;
  Json row;
  row["step"] = report.step;
  row["split"] = "train";
  row["loss"] = number(report.loss);
  row["lr"] = number(report.lr);
  row["grad_norm"] = number(report.grad_norm);
  row["tokens"] = report.tokens;
  if (report.skipped) row["skipped"] = true;
  row["tokens_per_s"] = std::round(rate);
  row["elapsed_s"] = to_milliseconds(elapsed_before_s_ + seconds_since(started_));
  file_->append(row.dump());
}

void MetricsLog::add_health(const StepReport& report) {
  Json row;
  row["step"] = report.step;
  row["split"] = "health";
  if (report.skipped) row["skipped"] = true;
  for (const auto& [name, value] : report.health->figures()) row[name] = number(value);
  file_->append(row.dump());
}

void MetricsLog::add(const EvaluationReport& report) {
  Json row;
  row["step"] = report.step;
  row["split"] = "val";
  row["loss"] = number(report.validation.loss);
  row["bits_per_byte"] = number(report.validation.bits_per_byte);
  file_->append(row.dump());
}

}  // namespace handgrad
