#include "handgrad/config/resume.h"

#include <fmt/format.h>

#include "config/values.h"
#include "handgrad/config/validate.h"
#include "handgrad/core/errors.h"

namespace handgrad {
namespace {

Index global_batch(const Config& config) { return config.train.batch_size * config.train.accumulation; }

// The reason why a difference is refused; empty if it is allowed. Both keys of the global batch are checked together.
std::string refusal(const ConfigDifference& difference, const Config& requested, Index steps_done) {
  switch (difference.resume) {
    case config::ResumeClass::same:
      return fmt::format("{} is {} in the stored run, {} requested", difference.key, difference.stored,
                         difference.requested);
    case config::ResumeClass::steps:
      if (requested.train.steps >= steps_done) return {};
      return fmt::format("{} {} requested, but {} are completed", difference.key, difference.requested, steps_done);
    case config::ResumeClass::free:
    case config::ResumeClass::global_batch:
      return {};
  }
  return {};
}

void add(std::string& list, const std::string& reason) {
  if (!reason.empty()) list += (list.empty() ? "" : "; ") + reason;
}

}  // namespace

std::vector<ConfigDifference> resume_differences(const Config& stored, const Config& requested) {
  Config a = resolve(stored);
  Config b = resolve(requested);
  if (a.model.vocab_size == 0 || b.model.vocab_size == 0) a.model.vocab_size = b.model.vocab_size = 0;
  std::vector<ConfigDifference> differences;
  for (const config::Field& field : config::fields()) {
    const config::FieldValue before = field.get(a);
    const config::FieldValue after = field.get(b);
    if (before != after)
      differences.push_back({field.key, config::to_toml(before), config::to_toml(after), field.resume});
  }
  return differences;
}

std::vector<ConfigDifference> check_resume(const Config& stored, const Config& requested, Index steps_done) {
  const std::vector<ConfigDifference> differences = resume_differences(stored, requested);
  std::string refused;
  for (const ConfigDifference& difference : differences) add(refused, refusal(difference, requested, steps_done));
  if (global_batch(stored) != global_batch(requested)) {
    add(refused, fmt::format("train.batch_size x train.accumulation is {} x {} in the stored run, {} x {} requested",
                             stored.train.batch_size, stored.train.accumulation, requested.train.batch_size,
                             requested.train.accumulation));
  }
  if (!refused.empty()) throw ConfigError(config::one_line("cannot resume: " + refused));
  return differences;
}

}  // namespace handgrad
