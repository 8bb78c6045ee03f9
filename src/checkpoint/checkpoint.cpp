#include "handgrad/checkpoint/checkpoint.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/math.h"
#include "handgrad/config/describe.h"
#include "handgrad/config/parse.h"
#include "handgrad/config/validate.h"
#include "handgrad/core/errors.h"
#include "handgrad/core/numerics.h"
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
      throw NonFiniteError(fmt::format("checkpoint: {}[{}] must be finite, got {}", path, i, values[i]));
    }
  }
}

template <class S>
void add_tensor(ContainerContents& contents, const std::string& path, const Parameter& p, const S* flat) {
  const std::span<const S> values(flat + p.offset, p.shape.size());
  check_finite(values.data(), p.shape.size(), path);
  contents.add<S>(path, values, extents_of(p.shape));
}

// The integer counters of the loop, by the names of their attributes.
constexpr std::pair<const char*, Index LoopState::*> counters[] = {
    {"step", &LoopState::step},
    {"updates", &LoopState::updates},
    {"tokens", &LoopState::tokens},
    {"best_step", &LoopState::best_step},
    {"evaluations_since_best", &LoopState::evaluations_since_best},
    {"skipped", &LoopState::skipped},
    {"skipped_in_row", &LoopState::skipped_in_row}};

void add_loop(ContainerContents& contents, const LoopState& loop) {
  for (const auto& [name, counter] : counters) contents.attributes.push_back({"/loop", name, loop.*counter});
  contents.attributes.push_back({"/loop", "best_loss", loop.best_loss});
  contents.attributes.push_back({"/loop", "evaluation_pending", Index{loop.evaluation_pending}});
}

LoopState read_loop(const Container& container) {
  LoopState loop;
  for (const auto& [name, counter] : counters) {
    loop.*counter = container.attribute<std::int64_t>("/loop", name);
    if (loop.*counter < 0) {
      throw CheckpointError(
          fmt::format("cannot load {}: /loop/{} must be at least 0, got {}", container.name(), name, loop.*counter));
    }
  }
  loop.best_loss = container.attribute<double>("/loop", "best_loss");
  loop.evaluation_pending = container.attribute_or<std::int64_t>("/loop", "evaluation_pending", 0) != 0;
  if (loop.updates > loop.step) {
    throw CheckpointError(fmt::format("cannot load {}: /loop/updates must be at most /loop/step, got {} and {}",
                                      container.name(), loop.updates, loop.step));
  }
  return loop;
}

// Copies a tensor out of a container, or adds the reason why it cannot to `complaints`.
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

// Adds the datasets below `group` that are not known to `complaints`.
template <class Known>
void complain_of_unknown(const Container& container, std::string_view group, Known known, std::string& complaints) {
  for (const DatasetEntry& entry : container.datasets()) {
    if (entry.path.starts_with(group) && !known(entry.path)) complaints += fmt::format("; {} is unknown", entry.path);
  }
}

void refuse(const Container& container, const std::string& complaints) {
  if (complaints.empty()) return;
  throw CheckpointError(fmt::format("cannot load {}: {}", container.name(), complaints.substr(2)));
}

void refuse_unknown_datasets(const Container& container) {
  std::string complaints;
  const auto known = [](const std::string& path) {
    return path == "/config" || path == "/tokenizer/code_points" || path.starts_with("/model/") ||
           path.starts_with("/optimizer/");
  };
  complain_of_unknown(container, "/", known, complaints);
  refuse(container, complaints);
}

std::unique_ptr<Tokenizer> stored_tokenizer(const Container& container) {
  std::vector<std::uint32_t> code_points;
  if (container.find("/tokenizer/code_points")) {
    const auto stored = container.values<std::uint32_t>("/tokenizer/code_points");
    code_points.assign(stored.begin(), stored.end());
  }
  return rebuild_tokenizer(container.attribute<std::string>("/tokenizer", "kind"), std::move(code_points));
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
      add_tensor<S>(contents, state_path(p, names[i]), p, source.optimizer.state(i).data());
    }
  }
  contents.add_text("/config", config);
  if (!code_points.empty()) {
    contents.add<std::uint32_t>("/tokenizer/code_points", code_points, {std::ssize(code_points)});
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
  try {
    config_ = parse_config(container_.text("/config"), "/config", "/").config;
    validate(config_, "/config");
    tokenizer_ = stored_tokenizer(container_);
  } catch (const CheckpointError&) {
    throw;
  } catch (const Error& error) {
    throw CheckpointError(fmt::format("cannot load {}: {}", path(), error.what()));
  }
  if (config_.model.vocab_size != tokenizer_->vocab_size()) {
    throw CheckpointError(fmt::format("cannot load {}: the tokenizer has {} tokens, but model.vocab_size is {}", path(),
                                      tokenizer_->vocab_size(), config_.model.vocab_size));
  }
  refuse_unknown_datasets(container_);
  loop_ = read_loop(container_);
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
      take_tensor(container_, state_path(p, names[i]), p, optimizer.state(i).data(), complaints);
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
