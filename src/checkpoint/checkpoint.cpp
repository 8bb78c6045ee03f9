#include "handgrad/checkpoint/checkpoint.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/math.h"
#include "handgrad/config/describe.h"
#include "handgrad/config/parse.h"
#include "handgrad/config/validate.h"
#include "handgrad/core/errors.h"
#include "handgrad/core/gemm.h"
#include "handgrad/io/container_writer.h"

namespace handgrad {
namespace {

std::string model_path(const Parameter& p) { return "/model/" + p.name; }
std::string state_path(const Parameter& p, const char* state) { return "/optimizer/" + p.name + "/" + state; }

std::vector<Index> extents_of(const Shape& shape) { return {shape.extents().begin(), shape.extents().end()}; }

template <class S>
void check_finite(const S* values, Index size, const std::string& path) {
  for (Index i = 0; i < size; ++i) {
    if (!is_finite(values[i])) {
      throw NonFiniteError(
          fmt::format("checkpoint: {}[{}] is {}: a state that is not finite is not stored", path, i, values[i]));
    }
  }
}

template <class S>
void add_tensor(ContainerContents& contents, const std::string& path, const Parameter& p, const S* flat) {
  const std::span<const S> values(flat + p.offset, static_cast<std::size_t>(p.shape.size()));
  check_finite(values.data(), p.shape.size(), path);
  contents.add<S>(path, values, extents_of(p.shape));
}

void add_loop(ContainerContents& contents, const LoopState& loop) {
  contents.attributes.push_back({"/loop", "step", loop.step});
  contents.attributes.push_back({"/loop", "updates", loop.updates});
  contents.attributes.push_back({"/loop", "tokens", loop.tokens});
  contents.attributes.push_back({"/loop", "best_loss", loop.best_loss});
  contents.attributes.push_back({"/loop", "best_step", loop.best_step});
  contents.attributes.push_back({"/loop", "evaluations_since_best", loop.evaluations_since_best});
  contents.attributes.push_back({"/loop", "evaluation_pending", Index{loop.evaluation_pending}});
  contents.attributes.push_back({"/loop", "skipped", loop.skipped});
  contents.attributes.push_back({"/loop", "skipped_in_row", loop.skipped_in_row});
}

// Copies a tensor out of a container, or says what is wrong with it.
template <class S>
void take_tensor(const Container& container, const std::string& path, const Parameter& p, S* flat,
                 std::string& complaints) {
  const DatasetEntry* entry = container.find(path);
  if (!entry) {
    complaints += fmt::format("; {} is missing", path);
    return;
  }
  if (entry->shape != extents_of(p.shape)) {
    complaints += fmt::format("; {} is ({}), expected {}", path, fmt::join(entry->shape, ", "), p.shape.to_string());
    return;
  }
  const std::span<const S> values = container.values<S>(path);
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!is_finite(values[i])) {
      throw CheckpointError(fmt::format("cannot load {}: {}[{}] is {}", container.name(), path, i, values[i]));
    }
  }
  std::copy(values.begin(), values.end(), flat + p.offset);
}

// Datasets below `group` that belong to nothing.
template <class Known>
void complain_of_unknown(const Container& container, std::string_view group, Known known, std::string& complaints) {
  for (const DatasetEntry& entry : container.datasets()) {
    if (entry.path.starts_with(group) && !known(entry.path)) complaints += fmt::format("; {} is unknown", entry.path);
  }
}

void refuse(const Container& container, const std::string& complaints) {
  if (!complaints.empty())
    throw CheckpointError(fmt::format("cannot load {}: {}", container.name(), complaints.substr(2)));
}

}  // namespace

template <class S>
void save_checkpoint(FileSystem* fs, const std::string& path, const CheckpointSource<S>& source) {
  ContainerContents contents;
  const std::string config = to_toml(source.config);
  const std::vector<std::uint32_t> code_points = source.tokenizer.code_points();
  for (const Parameter& p : source.parameters.parameters()) {
    add_tensor(contents, model_path(p), p, source.parameters.values());
    const auto names = source.optimizer.state_names();
    for (std::size_t i = 0; i < names.size(); ++i) {
      add_tensor<S>(contents, state_path(p, names[i]), p, source.optimizer.state(i));
    }
  }
  contents.add_text("/config", config);
  if (!code_points.empty()) {
    contents.add<std::uint32_t>("/tokenizer/code_points", code_points, {static_cast<Index>(code_points.size())});
  }
  contents.attributes.push_back({"/", "handgrad", std::string(HANDGRAD_VERSION)});
  const Numerics numerics = this_numerics();
  contents.attributes.push_back({"/", "numerics", Index{numerics.version}});
  contents.attributes.push_back({"/", "gemm", numerics.gemm});
  contents.attributes.push_back({"/", "instructions", numerics.instructions});
  contents.attributes.push_back({"/tokenizer", "kind", std::string(source.tokenizer.name())});
  contents.attributes.push_back({"/data", "fingerprint", static_cast<std::int64_t>(source.data_fingerprint)});
  contents.attributes.push_back({"/data", "tokens", source.data_tokens});
  add_loop(contents, source.loop);
  write_container(fs, path, contents);
}

Checkpoint::Checkpoint(Container container) : container_(std::move(container)) {
  const std::string& name = container_.name();
  try {
    config_ = parse_config(container_.text("/config"), "/config", "/").config;
    validate(config_, "/config");
    std::vector<std::uint32_t> code_points;
    if (container_.find("/tokenizer/code_points")) {
      const auto stored = container_.values<std::uint32_t>("/tokenizer/code_points");
      code_points.assign(stored.begin(), stored.end());
    }
    tokenizer_ = rebuild_tokenizer(container_.attribute<std::string>("/tokenizer", "kind"), std::move(code_points));
  } catch (const CheckpointError&) {
    throw;
  } catch (const Error& error) {
    throw CheckpointError(fmt::format("cannot load {}: {}", name, error.what()));
  }
  if (config_.model.vocab_size != tokenizer_->vocab_size()) {
    throw CheckpointError(fmt::format("cannot load {}: a tokenizer of {} tokens does not fit a vocabulary of {}", name,
                                      tokenizer_->vocab_size(), config_.model.vocab_size));
  }
  std::string complaints;
  const auto known = [](const std::string& path) {
    return path == "/config" || path == "/tokenizer/code_points" || path.starts_with("/model/") ||
           path.starts_with("/optimizer/");
  };
  complain_of_unknown(container_, "/", known, complaints);
  refuse(container_, complaints);
  loop_.step = container_.attribute<std::int64_t>("/loop", "step");
  loop_.updates = container_.attribute<std::int64_t>("/loop", "updates");
  loop_.tokens = container_.attribute<std::int64_t>("/loop", "tokens");
  loop_.best_loss = container_.attribute<double>("/loop", "best_loss");
  loop_.best_step = container_.attribute<std::int64_t>("/loop", "best_step");
  loop_.evaluations_since_best = container_.attribute<std::int64_t>("/loop", "evaluations_since_best");
  loop_.evaluation_pending = container_.attribute_or<std::int64_t>("/loop", "evaluation_pending", 0) != 0;
  loop_.skipped = container_.attribute<std::int64_t>("/loop", "skipped");
  loop_.skipped_in_row = container_.attribute<std::int64_t>("/loop", "skipped_in_row");
  if (loop_.step < 0 || loop_.updates < 0 || loop_.updates > loop_.step || loop_.tokens < 0 || loop_.best_step < 0 ||
      loop_.evaluations_since_best < 0 || loop_.skipped < 0 || loop_.skipped_in_row < 0) {
    throw CheckpointError(fmt::format("cannot load {}: the loop's counters contradict each other", name));
  }
  numerics_ = {static_cast<int>(container_.attribute_or<std::int64_t>("/", "numerics", 1)),
               container_.attribute_or<std::string>("/", "gemm", {}),
               container_.attribute_or<std::string>("/", "instructions", {})};
  data_tokens_ = container_.attribute_or<std::int64_t>("/data", "tokens", 0);
  data_fingerprint_ = static_cast<std::uint64_t>(container_.attribute<std::int64_t>("/data", "fingerprint"));
}

Checkpoint Checkpoint::load(const std::string& path) { return Checkpoint(Container::load(path)); }

template <class S>
void Checkpoint::restore(ParameterStore<S>& parameters) const {
  std::string complaints;
  S* values = parameters.mutable_values();
  for (const Parameter& p : parameters.parameters()) take_tensor(container_, model_path(p), p, values, complaints);
  complain_of_unknown(
      container_, "/model/", [&](const std::string& path) { return parameters.find(path.substr(7)) != nullptr; },
      complaints);
  refuse(container_, complaints);
}

template <class S>
CausalLm<S> Checkpoint::model() const {
  CausalLm<S> model(config_.model);
  restore(model.store());
  return model;
}

template <class S>
void Checkpoint::restore(const ParameterStore<S>& parameters, Optimizer<S>& optimizer) const {
  std::string complaints;
  const auto names = optimizer.state_names();
  for (std::size_t i = 0; i < names.size(); ++i) {
    for (const Parameter& p : parameters.parameters()) {
      take_tensor(container_, state_path(p, names[i]), p, optimizer.state(i), complaints);
    }
  }
  const auto known = [&](const std::string& path) {
    const std::size_t slash = path.rfind('/');
    const bool state =
        std::any_of(names.begin(), names.end(), [&](const char* n) { return path.substr(slash + 1) == n; });
    return state && slash > 11 && parameters.find(path.substr(11, slash - 11));
  };
  complain_of_unknown(container_, "/optimizer/", known, complaints);
  refuse(container_, complaints);
  optimizer.set_updates(loop_.updates);
}

template void save_checkpoint<float>(FileSystem*, const std::string&, const CheckpointSource<float>&);
template CausalLm<float> Checkpoint::model<float>() const;
template void Checkpoint::restore<float>(ParameterStore<float>&) const;
template void Checkpoint::restore<float>(const ParameterStore<float>&, Optimizer<float>&) const;

}  // namespace handgrad
