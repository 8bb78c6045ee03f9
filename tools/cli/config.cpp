#include <fmt/format.h>

#include "command.h"
#include "config_path.h"
#include "escape.h"
#include "handgrad/config/describe.h"
#include "handgrad/config/parse.h"
#include "handgrad/config/validate.h"
#include "handgrad/train/memory.h"
#include "handgrad/train/trainer.h"

namespace handgrad::cli {
namespace {

// The size of a run of the config, as TOML comments. The vocabulary is that of the config or of its text.
std::string facts(const Config& config) {
  const TrainConfig& t = config.train;
  const Index tokens = t.batch_size * t.accumulation * config.model.context;
  std::string text =
      fmt::format("# {} per step ({} x {} sequences of {}), {} in {}\n", counted(tokens, "token"), t.batch_size,
                  t.accumulation, config.model.context, counted(tokens * t.steps, "token"), counted(t.steps, "step"));
  Config resolved = resolve(config);
  if (resolved.model.vocab_size == 0 && config.tokenizer.kind == TokenizerKind::byte) resolved.model.vocab_size = 256;
  try {
    Index text_bytes = 0, text_tokens = 0;
    if (resolved.model.vocab_size == 0) {
      const DataSource source = DataSource::load(config);
      for (const std::string& line : source.report()) text += fmt::format("# {}\n", escaped(line));
      resolved = complete_config(config, source.tokenizer().name(), source.tokenizer().vocab_size());
      text_bytes = source.text_bytes();
      text_tokens = source.token_count();
    }
    return text + fmt::format("# {} parameters, about {} of memory to train{}\n",
                              CausalLm<float>::count_parameters(resolved.model),
                              megabytes(estimate_memory(resolved, text_bytes, text_tokens).peak()),
                              text_tokens == 0 ? ", without the text" : "");
  } catch (const Error& error) {
    return text + fmt::format("# parameters and memory are not known: {}\n", escaped(error.what()));
  }
}

int explain(const Values& values) {
  const std::string only = values.text("file");
  const bool markdown = values.given("markdown");
  if (markdown && !only.empty()) {
    throw UsageError(fmt::format("config explain --markdown: unexpected argument {}", quoted_excerpt(only)));
  }
  fmt::print("{}", markdown ? explain_config_markdown() : explain_config(only));
  return done;
}

int check(const std::string& path, const std::vector<std::string>& overrides) {
  const std::vector<std::string> problems = config_problems(path, overrides);
  for (const std::string& problem : problems) note("error: " + problem);
  if (!problems.empty()) return usage;
  const Config config = load_config(path, overrides).config;
  fmt::print("{}{}", facts(config), to_toml(resolve(config)));
  return done;
}

}  // namespace

int run_config(const Arguments& arguments) {
  Options options("config",
                  "Explains the keys of a config, or checks a config file: it prints every error, or all resolved keys "
                  "and the size of a run.",
                  "explain [KEY | TABLE | WORD] | check FILE|RUN");
  options.flag("markdown", "explain: as Markdown");
  options.list("set", "KEY=VALUE", "check: set a key; may be repeated");
  options.positional({"what", "file"});
  const Values values = options.parse(arguments);
  if (values.help()) return done;
  const std::string what = values.required("what", "config: explain, or check FILE; see handgrad config --help");
  if (what == "explain") return explain(values);
  if (what != "check") {
    const std::string nearest = config::nearest_name(what, {"explain", "check"});
    throw UsageError(fmt::format("config: explain, or check FILE; got {}{}", quoted_excerpt(what),
                                 nearest.empty() ? "" : fmt::format("; did you mean {}?", nearest)));
  }
  return check(config_path(values.required("file", "config check: a FILE is needed")), values.list("set"));
}

}  // namespace handgrad::cli
