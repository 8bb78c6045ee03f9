#include <fmt/format.h>

#include <cmath>
#include <filesystem>

#include "command.h"
#include "handgrad/checkpoint/run_folder.h"
#include "handgrad/files/output_file.h"
#include "handgrad/io/container_reader.h"
#include "handgrad/io/reseal.h"
#include "handgrad/train/trainer.h"

namespace handgrad::cli {
namespace {

struct Summary {
  double rms = 0.0;
  double largest = 0.0;
  Index not_finite = 0;
};

template <class T>
Summary summarise(std::span<const T> values) {
  Summary s;
  for (const T value : values) {
    const double x = static_cast<double>(value);
    if (!std::isfinite(x)) {
      ++s.not_finite;
      continue;
    }
    s.rms += x * x;
    s.largest = std::max(s.largest, std::abs(x));
  }
  s.rms = values.empty() ? 0.0 : std::sqrt(s.rms / static_cast<double>(values.size()));
  return s;
}

std::string summary_of(const Container& container, const DatasetEntry& entry) {
  Summary s;
  if (entry.type == ElementType::float32) {
    s = summarise(container.values<float>(entry.path));
  } else if (entry.type == ElementType::float64) {
    s = summarise(container.values<double>(entry.path));
  } else {
    return "";
  }
  return fmt::format("rms {:.4g}, largest {:.4g}{}", s.rms, s.largest,
                     s.not_finite > 0 ? fmt::format(", {} NOT FINITE", s.not_finite) : "");
}

void print_datasets(const Container& container, bool states) {
  for (const DatasetEntry& entry : container.datasets()) {
    if (entry.path.starts_with("/optimizer/") && !states) continue;
    fmt::print("  {:<48} {:<8} ({})  {}\n", entry.path, io::element_name(entry.type), fmt::join(entry.shape, ", "),
               summary_of(container, entry));
  }
}

void print_attributes(const Container& container) {
  for (const Attribute& attribute : container.attributes()) {
    const std::string group = attribute.group == "/" ? "" : attribute.group;
    std::visit([&](const auto& value) { fmt::print("  {}/{} = {}\n", group, attribute.name, value); }, attribute.value);
  }
}

Index parameters_in(const Container& container) {
  Index count = 0;
  for (const DatasetEntry& entry : container.datasets()) {
    if (entry.path.starts_with("/model/")) count += static_cast<Index>(entry.bytes / io::element_bytes(entry.type));
  }
  return count;
}

// A container, or the newest checkpoint of a run folder.
Container load(const std::string& path) {
  if (!std::filesystem::is_directory(path)) return Container::load(path);
  const FoundCheckpoint found = find_checkpoint(path);
  note_passed_over(found.passed_over);
  return found.checkpoint->container();
}

int verify(const std::string& path) {
  try {
    const FoundCheckpoint found = find_checkpoint(path);
    const Checkpoint& checkpoint = *found.checkpoint;
    for (const std::string& reason : found.passed_over) fmt::print("{}\n", reason);
    const CausalLm<float> model = checkpoint.model<float>();
    const auto optimizer = make_optimizer(checkpoint.config(), model.store());
    checkpoint.restore(model.store(), *optimizer);
    fmt::print("{}: sound: seal, config, tokenizer, {} parameters and the optimiser's state, all finite\n",
               checkpoint.path(), model.store().scalar_count());
    return found.passed_over.empty() ? done : check_failed;
  } catch (const CheckpointError& error) {
    fmt::print("{}\n", error.what());
    return check_failed;
  }
}

}  // namespace

int run_inspect(const Arguments& arguments) {
  Options options("inspect", "Shows the contents of a checkpoint: config, step, tensors, seal.", "FILE");
  options.flag("verify", "Only check it: exit code 0 if it is sound, 1 if not");
  options.flag("reseal", "Seal a file that another program has edited; every other command refuses it");
  options.flag("states", "Also show the optimiser's tensors");
  options.positional({"file"});
  const Values values = options.parse(arguments);
  if (values.help()) return done;
  const std::string path = values.required("file", "inspect: a FILE is needed; see handgrad inspect --help");
  if (values.given("verify")) return verify(path);
  if (values.given("reseal")) {
    const bool sealed = reseal(posix_files(), files::link_target(path));
    fmt::print("{}: {}\n", path, sealed ? "sealed" : "the seal is valid already; the file is unchanged");
    return done;
  }
  const Container container = load(path);
  fmt::print("{}: {} bytes, seal sound, {} datasets, {} parameters\n", container.name(), container.bytes().size(),
             container.datasets().size(), parameters_in(container));
  print_attributes(container);
  print_datasets(container, values.given("states"));
  if (container.find("/config")) fmt::print("\n{}", container.text("/config"));
  return done;
}

}  // namespace handgrad::cli
